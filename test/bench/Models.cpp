#include "Models.h"
#include "Networks.h"
#include "Values.h"

#include <cmath>
#include <optional>
#include <stdexcept>

namespace tressel::bench {
namespace {

/// A convolution without bias, and the normalization that follows it.
class ConvNorm : public nn::Module<ConvNorm> {
public:
  ConvNorm(int64_t channels, int64_t window, int64_t stride, int64_t groups, nn::Activation activation)
      : activation_(activation),
        conv_(child("conv", nn::Conv2d(channels, window,
                                       {.stride = stride, .padding = window / 2, .groups = groups, .bias = false}))),
        norm_(child("norm", nn::BatchNorm())) {}
  Tensor forward(Tensor x) const {
    const Tensor y = norm_(conv_(x));
    return activation_ ? activation_(y) : y;
  }

private:
  nn::Activation activation_;
  nn::Conv2d conv_;
  nn::BatchNorm norm_;
};

/// ResNet's block of two 3x3 convolutions.
class BasicBlock : public nn::Module<BasicBlock> {
public:
  BasicBlock(int64_t channels, int64_t stride, bool changesForm)
      : first_(child("first", ConvNorm(channels, 3, stride, 1, relu))),
        second_(child("second", ConvNorm(channels, 3, 1, 1, nullptr))) {
    if (changesForm)
      shortcut_ = child("shortcut", ConvNorm(channels, 1, stride, 1, nullptr));
  }
  Tensor forward(Tensor x) const { return relu(second_(first_(x)) + (shortcut_ ? (*shortcut_)(x) : x)); }

private:
  ConvNorm first_, second_;
  std::optional<ConvNorm> shortcut_;
};

nn::Sequential resnet18() {
  nn::Sequential net{ConvNorm(64, 7, 2, 1, relu), nn::MaxPool2d(3, 2, 1)};
  for (int64_t channels : {64, 128, 256, 512})
    for (int block = 0; block < 2; ++block) {
      const bool changesForm = block == 0 && channels > 64;
      net.add(BasicBlock(channels, changesForm ? 2 : 1, changesForm));
    }
  net.add(nn::GlobalAvgPool());
  net.add(nn::Dense(1000));
  return net;
}

/// MobileNet v2's block: 1x1 that widens, 3x3 of each channel by itself, 1x1 that narrows.
class InvertedResidual : public nn::Module<InvertedResidual> {
public:
  InvertedResidual(int64_t in, int64_t out, int64_t stride, int64_t expansion)
      : adds_(stride == 1 && in == out),
        window_(child("window", ConvNorm(in * expansion, 3, stride, in * expansion, relu6))),
        narrow_(child("narrow", ConvNorm(out, 1, 1, 1, nullptr))) {
    if (expansion > 1)
      widen_ = child("widen", ConvNorm(in * expansion, 1, 1, 1, relu6));
  }
  Tensor forward(Tensor x) const {
    const Tensor y = narrow_(window_(widen_ ? (*widen_)(x) : x));
    return adds_ ? x + y : y;
  }

private:
  bool adds_;
  ConvNorm window_, narrow_;
  std::optional<ConvNorm> widen_;
};

nn::Sequential mobilenet2() {
  struct Stage {
    int64_t expansion, channels, blocks, stride;
  };
  nn::Sequential net{ConvNorm(32, 3, 2, 1, relu6)};
  int64_t in = 32;
  for (const auto &[expansion, channels, blocks, stride] : std::initializer_list<Stage>{
           {1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}})
    for (int64_t block = 0; block < blocks; ++block) {
      net.add(InvertedResidual(in, channels, block == 0 ? stride : 1, expansion));
      in = channels;
    }
  net.add(ConvNorm(1280, 1, 1, 1, relu6));
  net.add(nn::GlobalAvgPool());
  net.add(nn::Dense(1000));
  return net;
}

/// The hidden states of all steps.
class RecurrentStates : public nn::Module<RecurrentStates> {
public:
  explicit RecurrentStates(int64_t hidden) : lstm_(child("lstm", nn::LSTM(hidden, {.batch_first = true}))) {}
  Tensor forward(Tensor x) const { return lstm_(x).output; }

private:
  nn::LSTM lstm_;
};

/// A transformer's encoder layer, without masks.
class Encoder : public nn::Module<Encoder> {
public:
  Encoder(int64_t width, int64_t heads, int64_t hidden)
      : layer_(child("layer", nn::TransformerEncoderLayer(width, heads, hidden, {.dropout = 0, .activation = gelu}))) {}
  Tensor forward(Tensor x) const { return layer_(x); }

private:
  nn::TransformerEncoderLayer layer_;
};

/// Two convolutions on each level of a U-Net.
class ConvPair : public nn::Module<ConvPair> {
public:
  explicit ConvPair(int64_t channels)
      : first_(child("first", nn::Conv2d(channels, 3, {.padding = 1, .activation = relu}))),
        second_(child("second", nn::Conv2d(channels, 3, {.padding = 1, .activation = relu}))) {}
  Tensor forward(Tensor x) const { return second_(first_(x)); }

private:
  nn::Conv2d first_, second_;
};

class UNet : public nn::Module<UNet> {
public:
  UNet(int64_t channels, int levels, int64_t classes)
      : pool_(child("pool", nn::MaxPool2d(2))), head_(child("head", nn::Conv2d(classes, 1))) {
    for (int level = 0; level < levels; ++level)
      down_.push_back(child("down" + std::to_string(level), ConvPair(channels << level)));
    bottom_ = child("bottom", ConvPair(channels << levels));
    for (int level = levels - 1; level >= 0; --level) {
      widen_.push_back(
          child("widen" + std::to_string(level), nn::ConvTranspose2d(channels << level, 2, {.stride = 2})));
      up_.push_back(child("up" + std::to_string(level), ConvPair(channels << level)));
    }
  }
  Tensor forward(Tensor x) const {
    std::vector<Tensor> sides;
    for (const ConvPair &down : down_) {
      sides.push_back(down(x));
      x = pool_(sides.back());
    }
    x = (*bottom_)(x);
    for (size_t i = 0; i < up_.size(); ++i)
      x = up_[i](concat({sides[sides.size() - 1 - i], widen_[i](x)}, 1));
    return head_(x);
  }

private:
  nn::MaxPool2d pool_;
  nn::Conv2d head_;
  std::vector<ConvPair> down_, up_;
  std::optional<ConvPair> bottom_;
  std::vector<nn::ConvTranspose2d> widen_;
};

} // namespace

Shape Model::input(int64_t batch) const {
  std::vector<int64_t> sizes{batch};
  sizes.insert(sizes.end(), one.begin(), one.end());
  return Shape(sizes);
}

const std::vector<Model> &models() {
  using nn::Sequential;
  static const std::vector<Model> all{
      {"lenet", {1, 28, 28}, lenet},
      {"mlp3", {784}, mlp3},
      {"mlp-wide",
       {512},
       [] {
         return Sequential{nn::Dense(2048, gelu), nn::Dense(2048, gelu), nn::Dense(512)};
       }},
      {"resnet18", {3, 224, 224}, resnet18},
      {"mobilenet2", {3, 224, 224}, mobilenet2},
      {"lstm", {32, 128}, [] { return Sequential{RecurrentStates(256)}; }},
      {"transformer", {128, 512}, [] { return Sequential{Encoder(512, 8, 2048)}; }},
      {"unet", {3, 128, 128}, [] { return Sequential{UNet(32, 3, 2)}; }},
  };
  return all;
}

const Model &modelNamed(const std::string &name) {
  for (const Model &model : models())
    if (model.name == name)
      return model;
  throw std::out_of_range("no model " + name);
}

Tensor numbers(const Shape &shape, uint32_t seed, float scale) {
  std::vector<float> values(static_cast<size_t>(shape.numElements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = valueAt(seed, i) * scale;
  return from_span(values, shape);
}

std::vector<float> flat(const Tensor &y) { return reshape(y, {y.size()}).to_vector<float>(); }

void fillWeights(float *weights, int64_t count, int64_t inputs) {
  const uint32_t seed = seedOf("weight");
  for (int64_t i = 0; i < count; ++i)
    weights[i] = valueAt(seed, static_cast<uint64_t>(i)) * weightScale(inputs);
}

void fillParameters(const nn::ModuleHandle &net) {
  for (const nn::NamedParameters &named : {net.parameters(), net.buffers()})
    for (const auto &[name, variable] : named) {
      const Shape shape = variable.shape();
      std::vector<int64_t> extents;
      for (int i = 0; i < shape.rank(); ++i)
        extents.push_back(shape.extent(i));
      variable.assign(from_span(parameterValues(name, extents), shape));
    }
}

} // namespace tressel::bench
