// Pictures of graphs.
#include "ir/graph/Draw.h"

#include <gtest/gtest.h>

#include <string>

using namespace tressel::graph;

namespace {

constexpr const char *kBranches = R"(
func.func @main(%a: tensor<2xf32> {tressel.name = "a"}, %w: tensor<2xf32> {tressel.state = "layer.weight"})
    -> (tensor<2xf32> {tressel.name = "d"}) {
  %one = tressel.constant dense<1.0> : tensor<f32>
  %b = tressel.add %a, %one : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %c = tressel.add %a, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %d = tressel.mul %b, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %d : tensor<2xf32>
})";

std::string drawn(const char *mlir, Drawing form) {
  const Drawn d = draw(mlir, form, "g");
  EXPECT_EQ(d.problem, "");
  return d.text;
}

size_t count(const std::string &text, const std::string &what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++n;
  return n;
}

TEST(Draw, TextPutsWhatCanRunAtOnceInOneRow) {
  EXPECT_EQ(drawn(kBranches, Drawing::Text), "g: 3 ops\n"
                                             "  0.  a: f32[2]   |   layer.weight: f32[2]\n"
                                             "  1.  %0 = add(a, 1)   |   %1 = add(a, layer.weight)\n"
                                             "  2.  %2 = mul(%0, %1)\n"
                                             "  3.  d = %2\n");
}

TEST(Draw, DotHasAnEdgePerUse) {
  const std::string text = drawn(kBranches, Drawing::Dot);
  EXPECT_EQ(count(text, " -> "), 7u); // two operands each of three ops, and the output
  EXPECT_NE(text.find("n0 -> n3;"), std::string::npos) << text;
  EXPECT_EQ(text.find("n3 -> n4"), std::string::npos) << "b and c do not depend on each other\n" << text;
}

TEST(Draw, SvgHasABoxPerNodeAndAnEdgePerUse) {
  const std::string text = drawn(kBranches, Drawing::Svg);
  EXPECT_EQ(count(text, "<rect class=\"op\""), 3u);
  EXPECT_EQ(count(text, "<rect class=\"value\""), 2u);
  EXPECT_EQ(count(text, "<rect class=\"state\""), 1u);
  EXPECT_EQ(count(text, "class=\"edge\""), 7u);
  EXPECT_EQ(text.find("y=\"-"), std::string::npos) << "nothing above the page";
  EXPECT_EQ(text.find("x=\"-"), std::string::npos) << "nothing left of the page";
}

TEST(Draw, NamesAreQuoted) {
  const char *hostile = R"(
func.func @main(%a: tensor<2xf32> {tressel.name = "<script>\22;\0A& \\"}) -> (tensor<2xf32> {tressel.name = "y"}) {
  %b = tressel.exp %a : (tensor<2xf32>) -> tensor<2xf32>
  return %b : tensor<2xf32>
})";
  const std::string svg = drawn(hostile, Drawing::Svg), dot = drawn(hostile, Drawing::Dot);
  EXPECT_EQ(svg.find("<script>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("&lt;script&gt;&quot;; &amp; \\"), std::string::npos) << svg;
  EXPECT_NE(dot.find("<script>\\\"; & \\\\"), std::string::npos) << dot;
}

TEST(Draw, AnOpWithBodiesIsOneNode) {
  const std::string text = drawn(R"(
func.func @main(%f: tensor<i1> {tressel.name = "f"}, %x: tensor<2xf32> {tressel.name = "x"})
    -> (tensor<2xf32> {tressel.name = "y"}) {
  %y = tressel.cond %f : tensor<i1> with(%x : tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%a: tensor<2xf32>):
    %s = tressel.sqrt %a : (tensor<2xf32>) -> tensor<2xf32>
    tressel.yield %s : tensor<2xf32>
  } else {
  ^bb0(%a: tensor<2xf32>):
    %n = tressel.exp %a : (tensor<2xf32>) -> tensor<2xf32>
    tressel.yield %n : tensor<2xf32>
  }
  return %y : tensor<2xf32>
})",
                                 Drawing::Text);
  EXPECT_NE(text.find("%0 = cond (sqrt, exp)(f, x)"), std::string::npos) << text;
}

TEST(Draw, ALargeGraphIsNoPicture) {
  std::string mlir =
      "func.func @main(%v0: tensor<2xf32> {tressel.name = \"x\"}) -> (tensor<2xf32> {tressel.name = \"y\"}) {\n";
  const size_t ops = kMostDrawnNodes;
  for (size_t i = 1; i <= ops; ++i)
    mlir += "%v" + std::to_string(i) + " = tressel.exp %v" + std::to_string(i - 1) +
            " : (tensor<2xf32>) -> tensor<2xf32>\n";
  mlir += "return %v" + std::to_string(ops) + " : tensor<2xf32>\n}";
  const Drawn picture = draw(mlir, Drawing::Svg, "g");
  EXPECT_EQ(picture.text, "");
  EXPECT_EQ(picture.problem,
            "a graph of 502 nodes makes no picture (the most are 500): name the file .dot and give it to "
            "Graphviz, or .txt");
  EXPECT_EQ(count(draw(mlir, Drawing::Dot, "g").text, " -> "), ops + 1);
}

TEST(Draw, FormsGoByTheNameOfTheFile) {
  EXPECT_EQ(drawingOf("a/b.svg"), Drawing::Svg);
  EXPECT_EQ(drawingOf("b.dot"), Drawing::Dot);
  EXPECT_EQ(drawingOf("b.txt"), Drawing::Text);
  EXPECT_EQ(drawingOf("b.mlir"), std::nullopt);
  EXPECT_NE(draw("func.func @other() { return }", Drawing::Text, "g").problem, "");
}

} // namespace
