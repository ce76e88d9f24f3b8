#include "tools/tressel/Tensors.h"

#include "frontend/onnx/TensorData.h"
#include "tools/tressel/Tool.h"
#include "tressel/runtime/Half.h"
#include "tressel/runtime/Npy.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <zip.h>

namespace tressel::tool {

static HostTensor shared(const runtime::NpyArray &array) {
  auto owner = std::make_shared<runtime::StorageRef>(array.data);
  return {array.type, std::shared_ptr<std::byte[]>(owner, static_cast<std::byte *>((*owner)->data()))};
}

/// The members of a .npz, which is a zip archive of .npy files.
static std::vector<std::pair<std::string, HostTensor>> readNpz(const std::string &path) {
  int code = 0;
  std::unique_ptr<zip_t, decltype(&zip_discard)> archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code),
                                                         &zip_discard);
  if (!archive)
    throw InputError(path + ": cannot be read, or is no .npz");
  std::vector<std::pair<std::string, HostTensor>> list;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    zip_stat_t stat;
    std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file(
        zip_fopen_index(archive.get(), static_cast<zip_uint64_t>(i), 0), &zip_fclose);
    constexpr zip_uint64_t limit = zip_uint64_t(1) << 40;
    if (!file || zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &stat) || stat.size > limit)
      throw InputError(path + ": member " + std::to_string(i) + " is damaged");
    std::string name = stat.name;
    if (!name.ends_with(".npy"))
      throw InputError(path + ": member '" + name + "' is no .npy");
    // Read in pieces, as the size in the directory cannot be trusted.
    std::string bytes;
    for (std::string piece(1 << 20, '\0');;) {
      zip_int64_t n = zip_fread(file.get(), piece.data(), piece.size());
      if (n < 0)
        throw InputError(path + ": member '" + name + "' is damaged");
      if (n == 0)
        break;
      bytes.append(piece, 0, static_cast<size_t>(n));
    }
    list.emplace_back(name.substr(0, name.size() - 4),
                      shared(runtime::parseNpy(std::as_bytes(std::span(bytes)), path + ":" + name)));
  }
  return list;
}

std::vector<std::pair<std::string, HostTensor>> readTensors(const std::string &path) {
  if (path.ends_with(".npz"))
    return readNpz(path);
  std::vector<std::pair<std::string, HostTensor>> one(1);
  if (path.ends_with(".pb"))
    one[0].second = onnx::loadTensorFile(path, &one[0].first);
  else
    one[0].second = shared(runtime::readNpy(path));
  return one;
}

double elementOf(const HostTensor &t, int64_t i) {
  switch (t.type.dtype) {
  case DType::f32:
    return t.as<float>()[i];
  case DType::f64:
    return t.as<double>()[i];
  case DType::f16:
    return halfToFloat(t.as<uint16_t>()[i]);
  case DType::bf16:
    return bfloatToFloat(t.as<uint16_t>()[i]);
  case DType::i8:
    return t.as<int8_t>()[i];
  case DType::i16:
    return t.as<int16_t>()[i];
  case DType::i32:
    return t.as<int32_t>()[i];
  case DType::i64:
    return static_cast<double>(t.as<int64_t>()[i]);
  case DType::u8:
  case DType::boolean:
    return t.as<uint8_t>()[i];
  }
  return 0;
}

std::string spellElement(const HostTensor &t, int64_t i) {
  if (t.type.dtype == DType::boolean)
    return elementOf(t, i) != 0 ? "true" : "false";
  if (t.type.dtype == DType::i64)
    return std::to_string(t.as<int64_t>()[i]);
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", elementOf(t, i));
  return text;
}

static void setElement(HostTensor &t, int64_t i, double v) {
  switch (t.type.dtype) {
  case DType::f32:
    t.as<float>()[i] = static_cast<float>(v);
    break;
  case DType::f64:
    t.as<double>()[i] = v;
    break;
  case DType::f16:
    t.as<uint16_t>()[i] = halfFromDouble(v);
    break;
  case DType::bf16:
    t.as<uint16_t>()[i] = bfloatFromDouble(v);
    break;
  case DType::i8:
    t.as<int8_t>()[i] = static_cast<int8_t>(v);
    break;
  case DType::i16:
    t.as<int16_t>()[i] = static_cast<int16_t>(v);
    break;
  case DType::i32:
    t.as<int32_t>()[i] = static_cast<int32_t>(v);
    break;
  case DType::i64:
    t.as<int64_t>()[i] = static_cast<int64_t>(v);
    break;
  case DType::u8:
  case DType::boolean:
    t.as<uint8_t>()[i] = static_cast<uint8_t>(v);
    break;
  }
}

HostTensor randomTensor(const TensorType &type, uint64_t seed, const std::string &name) {
  for (char c : name) // FNV-1a, so that inputs differ from each other
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::mt19937_64 bits(seed);
  auto uniform = [&] { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; };
  HostTensor t = HostTensor::allocate(type);
  // The distributions of the standard library differ between implementations, so the normal one is made here.
  for (int64_t i = 0; i < type.shape.numElements(); ++i)
    setElement(t, i,
               isFloat(type.dtype) ? std::sqrt(-2 * std::log(uniform())) * std::cos(2 * M_PI * uniform())
                                   : static_cast<double>(bits() >> 63));
  return t;
}

void writeTensor(const std::string &path, const HostTensor &tensor) {
  writeFile(path, runtime::formatNpy(tensor.type, tensor.data.get()));
}

Difference compare(const HostTensor &got, const HostTensor &want, double rtol, double atol) {
  Difference d;
  double worstExcess = 0;
  for (int64_t i = 0; i < got.type.shape.numElements(); ++i) {
    double g = elementOf(got, i), w = elementOf(want, i);
    double absolute = g == w || (std::isnan(g) && std::isnan(w)) ? 0 : std::abs(g - w);
    if (got.type.dtype == DType::i64) // beyond 2^53, different ones may be the same double
      absolute = static_cast<double>(
          std::abs(static_cast<long double>(got.as<int64_t>()[i]) - static_cast<long double>(want.as<int64_t>()[i])));
    if (absolute == 0)
      continue;
    const double allowed = atol + rtol * std::abs(w);
    if (std::isfinite(absolute)) {
      d.maxAbsolute = std::max(d.maxAbsolute, absolute);
      if (w != 0)
        d.maxRelative = std::max(d.maxRelative, absolute / std::abs(w));
    } else {
      d.maxAbsolute = d.maxRelative = std::numeric_limits<double>::infinity();
      absolute = std::numeric_limits<double>::infinity();
    }
    if (absolute <= allowed && std::isfinite(g) && std::isfinite(w))
      continue;
    d.within = false;
    ++d.mismatches;
    if (double excess = absolute - (std::isfinite(allowed) ? allowed : 0); d.worst < 0 || excess > worstExcess) {
      worstExcess = excess;
      d.worst = i;
    }
  }
  return d;
}

Summary summarize(const HostTensor &tensor) {
  Summary s;
  const int64_t n = tensor.type.shape.numElements();
  if (n == 0)
    return s;
  s.min = std::numeric_limits<double>::infinity();
  s.max = -s.min;
  for (int64_t i = 0; i < n; ++i) {
    double v = elementOf(tensor, i);
    if (i < 8)
      s.first.push_back(v);
    s.mean += v / static_cast<double>(n);
    s.min = std::isnan(v) ? v : std::min(s.min, v); // a NaN shows in all three
    s.max = std::isnan(v) ? v : std::max(s.max, v);
  }
  if (std::isnan(s.mean))
    s.min = s.max = s.mean;
  return s;
}

} // namespace tressel::tool
