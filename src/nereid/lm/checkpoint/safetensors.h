// safetensors files: read by mmap as hostile input, written piece by piece and atomically.
//
// The format: 8 bytes with the header's length N (little endian), N bytes of JSON, then the tensors' bytes.
// The header maps each name to {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, offsets
// counted from the header's end; "__metadata__" maps text to text. Tensors cover all bytes after the header,
// without holes and without overlap; elements are little endian, rows first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/result.h"
#include "nereid/lm/checkpoint/dtype.h"

namespace nereid::lm {

struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;  // empty: a scalar

  size_t bytes() const;  // checked to fit when it was read
};

// A tensor in a mapped file: its bytes need not be aligned to its elements.
struct TensorView {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

struct SafetensorsContent {
  std::map<std::string, TensorView, std::less<>> tensors;
  std::map<std::string, std::string> metadata;
};

// What is in these bytes, which must outlive it. Errors (blamed on the input) name `what`, the tensor, what
// was expected and what came.
Result<SafetensorsContent> parse_safetensors(std::span<const std::byte> bytes, std::string_view what);

// A mapped file. It must not become shorter while it is open: a read after its end would end the process.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  const std::filesystem::path& path() const { return path_; }
  const auto& tensors() const { return content_.tensors; }
  const auto& metadata() const { return content_.metadata; }

 private:
  SafetensorsFile() = default;
  std::filesystem::path path_;
  std::shared_ptr<const void> mapping_;
  SafetensorsContent content_;
};

// A checkpoint's tensors, wherever they lie: in `model.safetensors`, or in the shards that
// `model.safetensors.index.json` names.
class Checkpoint {
 public:
  static Result<Checkpoint> open(const std::filesystem::path& folder);
  const std::filesystem::path& folder() const { return folder_; }
  // All names, in order, with the file each is in.
  const std::map<std::string, size_t, std::less<>>& names() const { return file_of_; }
  // Null where there is none of that name.
  const TensorView* find(std::string_view name) const;
  // The file of a tensor that is there, for errors.
  std::string file_of(std::string_view name) const;

 private:
  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t, std::less<>> file_of_;
};

// Writes one file in the order of `tensors`, whose bytes come one after another. The file is invisible before
// `finish`, which syncs it and gives it its name; without it nothing stays.
class SafetensorsWriter {
 public:
  static Result<SafetensorsWriter> create(const std::filesystem::path& path, std::vector<TensorInfo> tensors,
                                          const std::map<std::string, std::string>& metadata = {
                                              {"format", "pt"}});
  SafetensorsWriter(SafetensorsWriter&& other) noexcept;
  SafetensorsWriter& operator=(SafetensorsWriter&&) = delete;
  ~SafetensorsWriter();
  // The next bytes; a tensor's may come in pieces.
  Status append(std::span<const std::byte> bytes);
  Status finish();

 private:
  SafetensorsWriter(std::filesystem::path path, std::filesystem::path temporary, Fd fd, uint64_t missing)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)), missing_(missing) {}
  Status write(const void* data, size_t bytes);
  std::filesystem::path path_, temporary_;  // `temporary_` is empty when nothing is left to remove
  Fd fd_;
  uint64_t missing_;  // bytes that are still to come
};

// How tensors are put into files of at most `max_bytes` (a larger tensor has one of its own), in their
// order, and the index that says so. One file is "model.safetensors", without an index.
struct Shard {
  std::string file;
  std::vector<TensorInfo> tensors;
};
struct ShardPlan {
  std::vector<Shard> shards;
  std::string index;  // the text of model.safetensors.index.json; empty for one file
};
ShardPlan plan_shards(const std::vector<TensorInfo>& tensors, uint64_t max_bytes);

}  // namespace nereid::lm
