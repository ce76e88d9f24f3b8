#include "tressel/runtime/Timeline.h"

#include "ScheduleBuilder.h"
#include "tressel/runtime/Error.h"
#include "tressel/runtime/Executable.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace tressel;
using namespace tressel::runtime;
using json = nlohmann::json;

namespace {

constexpr Picoseconds kMs = 1'000'000'000;

/// x is copied in while the first product runs; the second waits for both.
ScheduleBuilder sample() {
  ScheduleBuilder b(2);
  b.s.name = "net";
  b.s.streams[0].name = "gpu0";
  b.s.streams[1] = {{DeviceKind::Gpu, 0}, StreamKind::CopyIn, "gpu0.in"};
  const TensorType t = ScheduleBuilder::floats(1000);
  const uint32_t x = b.input("x", t), y = b.output("y", t), a = b.buffer(Space::Arena, b.arena(4096), 0, t);
  const uint32_t d = b.buffer(Space::Arena, b.arena(4096), 0, t);
  b.s.arenas[1].device = {DeviceKind::Gpu, 0};
  const uint32_t matmul = b.kernel("matmul_relu_0");
  b.s.kernels[matmul].flops = 2'000'000;
  b.s.kernels[matmul].bytes = 12'000;
  b.copy(x, d, {}, 1);
  b.launch(matmul, {a}, {a});
  b.launch(matmul, {d, a}, {y}, {0, 1});
  b.s.step.commands[2].loc = b.location("matmul, relu", "model.cpp", 42);
  return b;
}

Timeline simulated(const Schedule &s) {
  Timeline t{.kind = TimelineKind::Simulated, .program = s.name, .machine = "2gpu", .resources = resourcesOf(s)};
  const std::pair<Picoseconds, Picoseconds> times[] = {{0, 3 * kMs}, {0, 2 * kMs}, {3 * kMs, 7 * kMs}};
  for (uint32_t i : {2u, 1u, 0u}) {
    Span span = spanOf(s, i);
    std::tie(span.begin, span.end) = times[i];
    t.spans.push_back(span);
  }
  t.spans[0].after = {2, 1}; // of the last command
  t.criticalPath = {2, 0};
  t.lowerBound = 6 * kMs;
  arrange(t);
  return t;
}

/// Every writer's text.
std::vector<std::string> allForms(const Schedule &s, std::span<const Timeline> timelines) {
  return {timelineJson(s, timelines),           timelineSvg(s, timelines),
          timelineHtml(s, timelines),           timelineDot(s, timelines),
          timelineText(s, timelines, 80, true), timelineText(s, timelines, 80, false)};
}
size_t count(std::string_view text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size()))
    ++n;
  return n;
}
/// The data within the page.
json dataOf(const std::string &html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = html.find(open) + open.size();
  return json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

} // namespace

TEST(Timeline, CommandsAreDescribed) {
  const Schedule s = sample().s;
  const Span copy = spanOf(s, 0), product = spanOf(s, 2);
  EXPECT_EQ(copy.name, "h2d x");
  EXPECT_EQ(copy.kind, SpanKind::Copy);
  EXPECT_EQ(copy.resource, 1u);
  EXPECT_EQ(copy.bytes, 4000);
  EXPECT_EQ(product.name, "matmul_relu_0");
  EXPECT_EQ(product.flops, 2'000'000);
  EXPECT_EQ(product.bytes, 12'000);
  EXPECT_EQ(s.locations[product.loc].line, 42u);
}

TEST(Timeline, CommandsOfEveryKindAreDescribed) {
  ScheduleBuilder b;
  const TensorType t = ScheduleBuilder::floats(4);
  const uint32_t x = b.input("x", t), y = b.output("y", t), a = b.buffer(Space::Arena, b.arena(64), 0, t);
  const uint32_t flag = b.buffer(Space::Arena, b.arena(64), 0, {bool_, Shape{}});
  b.copy(a, y), b.copy(a, a), b.fill(a), b.fill(y);
  b.branch(flag, b.bodies(2)), b.whileLoop(flag, b.bodies(2)), b.loop(3, b.bodies());
  b.command({.kind = CommandKind::HostCall}, {}, {});
  b.command({.kind = CommandKind::Collective}, {{x, Access::Read}, {y, Access::Write}}, {});
  const std::pair<SpanKind, const char *> want[] = {
      {SpanKind::Copy, "copy y"},  {SpanKind::Copy, "copy f32[4]"}, {SpanKind::Fill, "fill f32[4]"},
      {SpanKind::Fill, "fill y"},  {SpanKind::Control, "branch"},   {SpanKind::Control, "while"},
      {SpanKind::Control, "loop"}, {SpanKind::Host, "host call"},   {SpanKind::Collective, "collective"}};
  for (uint32_t i = 0; i < std::size(want); ++i) {
    EXPECT_EQ(spanOf(b.s, i).kind, want[i].first) << i;
    EXPECT_EQ(spanOf(b.s, i).name, want[i].second);
  }
}

TEST(Timeline, ArrangeOrdersAndRenumbers) {
  const Timeline t = simulated(sample().s);
  EXPECT_EQ(t.spans[0].name, "matmul_relu_0"); // equal times: by resource
  EXPECT_EQ(t.spans[1].name, "h2d x");
  EXPECT_EQ(t.spans[2].after, (std::vector<uint32_t>{0, 1})); // the latest end last
  EXPECT_EQ(t.criticalPath, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(t.end, 7 * kMs);
  EXPECT_EQ(t.resources[0].busy, 6 * kMs);
  EXPECT_EQ(t.resources[1].busy, 3 * kMs);
}

TEST(Timeline, WorkSideBySideIsCountedOnce) {
  Timeline t{.resources = {{.name = "link"}}};
  t.spans = {{.begin = 0, .end = 10}, {.begin = 5, .end = 8}, {.begin = 9, .end = 12}, {.begin = 20, .end = 21}};
  arrange(t);
  EXPECT_EQ(t.resources[0].busy, 13);
  const json trace = json::parse(timelineJson({}, {&t, 1}));
  std::vector<int> threads; // no two that overlap share one
  for (const json &event : trace["traceEvents"])
    if (event["ph"] == "X")
      threads.push_back(event["tid"]);
  EXPECT_EQ(threads, (std::vector<int>{1, 2, 2, 1}));
}

/// The picture stays small enough for a document, and says how many commands a box stands for.
TEST(Timeline, APictureIsBounded) {
  Timeline t{.resources = {{.name = "gpu0"}, {.name = "gpu1"}}};
  constexpr uint32_t kEach = 20000;
  for (uint32_t i = 0; i < kEach; ++i)
    for (uint32_t r : {0u, 1u})
      t.spans.push_back({.resource = r, .begin = i * kMs, .end = (i + 1) * kMs});
  t.spans.push_back({.resource = 0, .begin = kEach * kMs, .end = 2 * kEach * kMs}); // can be seen by itself
  t.spans.back().name = "long";
  arrange(t);
  const std::string picture = timelineSvg({}, {&t, 1});
  EXPECT_LE(count(picture, "<title>"), 600u);
  EXPECT_GE(count(picture, "<title>"), 250u);
  EXPECT_EQ(count(picture, "<title>long"), 1u);
}

/// On each accelerator for itself: unions of intervals, and the shorter of the two.
TEST(Timeline, SideBySideIsThatOfIntervals) {
  const DeviceRef gpu0{DeviceKind::Gpu, 0}, gpu1{DeviceKind::Gpu, 1};
  Timeline t{.resources = {{"cpu", {}, StreamKind::Compute},
                           {"gpu0", gpu0, StreamKind::Compute},
                           {"gpu0.in", gpu0, StreamKind::CopyIn},
                           {"gpu0.out", gpu0, StreamKind::CopyOut},
                           {"gpu1", gpu1, StreamKind::Compute},
                           {"gpu1.comm", gpu1, StreamKind::Communication}}};
  t.spans = {{.resource = 0, .begin = 0, .end = 100}, // the host's work hides nothing
             {.resource = 2, .begin = 0, .end = 20},  {.resource = 3, .begin = 10, .end = 40}, // 40 in all
             {.resource = 1, .begin = 15, .end = 25}, {.resource = 1, .begin = 25, .end = 30}, // 15 of them hidden
             {.resource = 1, .begin = 50, .end = 90}};
  arrange(t);
  ASSERT_TRUE(t.sideBySide);
  EXPECT_DOUBLE_EQ(*t.sideBySide, 15.0 / 40);
  t.spans.push_back({.resource = 4, .begin = 0, .end = 10});
  t.spans.push_back({.resource = 5, .begin = 5, .end = 50}); // computing is shorter there
  arrange(t);
  EXPECT_DOUBLE_EQ(*t.sideBySide, (15.0 + 5) / (40 + 10));
  EXPECT_NE(timelineText({}, {&t, 1}, 80, false).find(", side by side 0.40"), std::string::npos);
  EXPECT_NE(timelineSvg({}, {&t, 1}).find(", side by side 0.40"), std::string::npos);
  EXPECT_NE(timelineHtml({}, {&t, 1}).find("\"sideBySide\":0.400"), std::string::npos);
  t.spans.resize(1);
  t.criticalPath.clear();
  arrange(t);
  EXPECT_FALSE(t.sideBySide);
}

TEST(Timeline, OfAProfile) {
  const Schedule s = sample().s;
  Profile profile;
  profile.commands = {{1000, 1500}, {1510, 1700}, {1700, 2500}};
  const Timeline t = measured(s, profile, "this machine");
  EXPECT_EQ(t.kind, TimelineKind::Measured);
  EXPECT_EQ(t.end, 1'500'000);
  ASSERT_EQ(t.spans.size(), 3u);
  EXPECT_EQ(t.spans[1].begin, 510'000);
  EXPECT_EQ(t.spans[1].end, 700'000);
  EXPECT_EQ(t.spans[2].after, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(t.resources[0].busy, 990'000);
  profile.commands.pop_back();
  EXPECT_THROW(measured(s, profile), InternalError);
}

TEST(Timeline, JsonHoldsEverything) {
  const Schedule s = sample().s;
  const Timeline t = simulated(s);
  const json trace = json::parse(timelineJson(s, {&t, 1}));
  std::vector<json> spans, arrows, threads;
  for (const json &event : trace["traceEvents"]) {
    EXPECT_EQ(event["pid"], 1);
    if (event["ph"] == "X" && event["tid"] != 0)
      spans.push_back(event);
    else if (event["ph"] == "s" || event["ph"] == "f")
      arrows.push_back(event);
    else if (event["name"] == "thread_name")
      threads.push_back(event["args"]["name"]);
  }
  EXPECT_EQ(threads, (std::vector<json>{"critical path", "gpu0", "gpu0.in"}));
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[2]["ts"], 3000); // microseconds
  EXPECT_EQ(spans[2]["dur"], 4000);
  EXPECT_EQ(spans[2]["cat"], "kernel");
  const json args = {{"command", 2},     {"op", "matmul, relu"}, {"file", "model.cpp"}, {"line", 42},
                     {"flops", 2000000}, {"bytes", 12000},       {"critical", true}};
  EXPECT_EQ(spans[2]["args"], args);
  ASSERT_EQ(arrows.size(), 2u); // one wait, between two resources; the other is the order of the stream
  EXPECT_EQ(arrows[0]["id"], arrows[1]["id"]);
  EXPECT_EQ(arrows[0]["tid"], 2);
  EXPECT_EQ(arrows[1]["tid"], 1);
  EXPECT_LT(arrows[0]["ts"], 3000); // within the span that it leaves
  EXPECT_EQ(arrows[1]["ts"], 3000);
}

TEST(Timeline, JsonTimesAreExact) {
  Timeline t{.resources = {{.name = "r"}}, .spans = {{.begin = 1'000'000'000'000'001, .end = 1'000'000'000'000'012}}};
  const std::string text = timelineJson({}, {&t, 1});
  EXPECT_NE(text.find("\"ts\":1000000000.000001,\"dur\":0.000011"), std::string::npos) << text;
}

TEST(Timeline, HtmlHoldsEverything) {
  const Schedule s = sample().s;
  const Timeline t = simulated(s);
  const json data = dataOf(timelineHtml(s, {&t, 1}));
  const json &one = data["timelines"][0];
  EXPECT_EQ(one["end"], 7 * kMs);
  EXPECT_EQ(one["lowerBound"], 6 * kMs);
  EXPECT_EQ(one["criticalPath"], (json{1, 2}));
  EXPECT_EQ(one["resources"][1], (json{{"name", "gpu0.in"}, {"busy", 3 * kMs}, {"lanes", 1}}));
  const json &span = one["spans"][2];
  EXPECT_EQ(data["strings"][span[5].get<size_t>()], "matmul_relu_0");
  EXPECT_EQ(data["strings"][data["locations"][span[6].get<size_t>()][0].get<size_t>()], "matmul, relu");
  EXPECT_EQ(span[10], (json{0, 1}));
}

TEST(Timeline, HtmlLoadsNothing) {
  const Schedule s = sample().s;
  const Timeline t = simulated(s);
  const std::string html = timelineHtml(s, {&t, 1});
  for (const char *word : {"http:", "https:", "src=", "@import", "url(", "fetch(", "innerHTML", "eval("})
    EXPECT_EQ(html.find(word), std::string::npos) << word;
  EXPECT_NE(html.find("Content-Security-Policy"), std::string::npos);
}

TEST(Timeline, DotShowsWaitsAndThePath) {
  const Schedule s = sample().s;
  const Timeline t = simulated(s);
  const std::string dot = timelineDot(s, {&t, 1});
  EXPECT_NE(dot.find("  s0 -> s2;\n"), std::string::npos) << dot;
  EXPECT_NE(dot.find("  s1 -> s2 [penwidth=3, color=\"#e11d48\"];\n"), std::string::npos) << dot;
  EXPECT_EQ(count(dot, "penwidth=3"), 3u); // two commands, one edge
}

TEST(Timeline, TextShowsResources) {
  const Schedule s = sample().s;
  const Timeline t = simulated(s);
  EXPECT_EQ(timelineText(s, {&t, 1}, 60, false), R"(net: simulated on 2gpu, 7.00 ms, at least 6.00 ms
gpu0          |###########    .#####################|  85.7%
gpu0.in       |================                     |  42.9%
critical path |================#####################|
                                              ^ lower bound
               +---------+----------+---------+-----
               0 ms      2 ms       4 ms      6 ms
               # kernel   = copy   . less than half of the time
)");
  const std::string utf8 = timelineText(s, {&t, 1}, 60, true);
  EXPECT_NE(utf8.find("│███"), std::string::npos);
  EXPECT_NE(utf8.find("▒▒▒"), std::string::npos);
}

TEST(Timeline, TextFitsItsColumns) {
  const Schedule s = sample().s;
  const Timeline t = simulated(s);
  for (int columns : {1, 40, 61, 200}) {
    const std::string text = timelineText(s, {&t, 1}, columns, false);
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      if (text.substr(at, 5) != "net: " && text.find("less than", at) > end)
        EXPECT_LE(end - at, size_t(std::max(40, columns))) << text.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(Timeline, EmptyAndSingle) {
  const Schedule s = sample().s;
  EXPECT_EQ(allForms(s, {}).size(), 6u);
  Timeline empty{.program = "none", .resources = resourcesOf(s)};
  arrange(empty);
  EXPECT_EQ(empty.end, 0);
  EXPECT_TRUE(json::accept(timelineJson(s, {&empty, 1})));
  EXPECT_EQ(dataOf(timelineHtml(s, {&empty, 1}))["timelines"][0]["spans"], json::array());
  allForms(s, {&empty, 1});
  // One span that takes no time.
  Timeline one{.program = "one", .resources = {{.name = "cpu"}}, .spans = {{.name = "k"}}};
  arrange(one);
  for (const std::string &text : allForms(s, {&one, 1}))
    EXPECT_FALSE(text.empty());
  EXPECT_TRUE(json::accept(timelineJson(s, {&one, 1})));
}

TEST(Timeline, TheSameBytesEveryTime) {
  const Schedule s = sample().s;
  const Timeline timelines[] = {simulated(s), simulated(s)};
  EXPECT_EQ(allForms(s, timelines), allForms(s, timelines));
  // However the simulator comes across its spans.
  Timeline shuffled = timelines[0];
  std::swap(shuffled.spans[0], shuffled.spans[1]);
  shuffled.spans[2].after = {1, 0};
  shuffled.criticalPath = {2, 0};
  arrange(shuffled);
  EXPECT_EQ(allForms(s, {&shuffled, 1}), allForms(s, {&timelines[0], 1}));
}

TEST(Timeline, HostileNames) {
  const char *names[] = {"</script><script>alert(1)</script>",
                         "\"><b onload='x'>&amp;",
                         "a\\\"b\nc\r\x1b[31m",
                         "<!-- ]]> -->",
                         "\xff\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80",
                         "\xE2\x80\xAEoverride",
                         "{script}{data}{style}",
                         "'; drop",
                         ("\xC2\x9B"
                          "31m"),
                         "tail \xE2\x82",
                         "%s%n\\N\\G"};
  for (const char *name : names) {
    ScheduleBuilder b = sample();
    b.s.name = name;
    b.s.kernels[0].symbol = name;
    b.s.streams[0].name = name;
    b.s.inputs[0].name = name;
    b.s.locations[1] = {name, name, 3};
    Timeline t = simulated(b.s);
    t.machine = name;
    const std::vector<std::string> forms = allForms(b.s, {&t, 1});
    const json trace = json::parse(forms[0]);
    const std::string html = forms[2];
    EXPECT_EQ(count(html, "<script"), 2u) << name;
    EXPECT_EQ(count(html, "</script"), 2u) << name;
    EXPECT_EQ(count(html, "<!--"), 0u) << name;
    EXPECT_EQ(dataOf(html)["timelines"][0]["spans"].size(), 3u) << name;
    EXPECT_EQ(count(forms[1], "<b") + count(forms[1], "<script") + count(forms[1], "<!--"), 0u) << name;
    for (const std::string &text : forms) {
      for (char c : text)
        EXPECT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)) << name;
      for (const char *harmful : {"\xff", "\xed\xa0\x80", "\xE2\x80\xAE", "\xC2\x9B", "\xE2\x82\""})
        EXPECT_EQ(text.find(harmful), std::string::npos) << name;
    }
    // Quotes of the graph's strings come in pairs on every line.
    const std::string &dot = forms[3];
    for (size_t at = 0; at < dot.size();) {
      const size_t end = dot.find('\n', at);
      size_t quotes = 0;
      for (size_t i = at; i < end; ++i)
        if (dot[i] == '\\')
          ++i;
        else if (dot[i] == '"')
          ++quotes;
      EXPECT_EQ(quotes % 2, 0u) << dot.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(Timeline, NamesStayAsTheyAre) { // what is harmless is kept
  ScheduleBuilder b = sample();
  const std::string name = "größe \xE4\xB8\xAD <a> & \"b\" 😀";
  b.s.kernels[0].symbol = name;
  const Timeline t = simulated(b.s);
  const json trace = json::parse(timelineJson(b.s, {&t, 1}));
  EXPECT_TRUE(std::ranges::any_of(trace["traceEvents"], [&](const json &event) { return event["name"] == name; }));
  const json data = dataOf(timelineHtml(b.s, {&t, 1}));
  EXPECT_TRUE(std::ranges::find(data["strings"], json(name)) != data["strings"].end());
}

TEST(Timeline, AHundredThousandSpans) {
  ScheduleBuilder b = sample();
  Timeline t{.program = "big"};
  for (int r = 0; r < 64; ++r)
    t.resources.push_back({.name = "r" + std::to_string(r)});
  for (uint32_t i = 0; i < 100'000; ++i) {
    Span span{.command = i, .resource = i % 64, .name = "k" + std::to_string(i % 100)};
    span.begin = Picoseconds(i) * 1000;
    span.end = span.begin + 500 + (i % 7) * 20'000; // some overlap the next of their resource
    if (i >= 64)
      span.after = {i - 63, i - 64};
    t.spans.push_back(std::move(span));
  }
  arrange(t);
  const std::vector<std::string> forms = allForms(b.s, {&t, 1});
  const json trace = json::parse(forms[0]);
  EXPECT_EQ(std::ranges::count(trace["traceEvents"], "X", [](const json &event) { return event["ph"]; }), 100'000);
  EXPECT_EQ(dataOf(forms[2])["timelines"][0]["spans"].size(), 100'000u);
  EXPECT_LT(forms[1].size(), 64u * 2 * 1200 * 200) << "the picture grows with the commands";
}
