#include "nereid/lm/checkpoint/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <random>

#include "nereid/lm/checkpoint/staged_folder.h"

namespace nereid::lm {
namespace {

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string safetensors_bytes(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

std::string safetensors_error(const std::string& header, const std::string& data) {
  const std::string file = safetensors_bytes(header, data);
  const auto content = parse_safetensors(as_bytes(file), "f");
  if (content.ok()) return "";
  EXPECT_EQ(content.error().blame, Blame::kInput);
  return content.error().message;
}

TEST(Safetensors, ReadsWhatTheFormatSays) {
  const std::string file = safetensors_bytes(
      R"({"__metadata__":{"format":"pt"},)"
      R"("b":{"dtype":"BF16","shape":[2,1],"data_offsets":[4,8]},"a":{"dtype":"F32","shape":[],)"
      R"("data_offsets":[0,4]},)"
      R"("none":{"dtype":"I64","shape":[0,3],"data_offsets":[8,8]}}  )",
      "abcdefgh");
  const auto content = parse_safetensors(as_bytes(file), "f");
  ASSERT_TRUE(content.ok()) << content.error().message;
  ASSERT_EQ(content->tensors.size(), 3u);
  const auto& b = content->tensors.find("b")->second;
  EXPECT_EQ(b.dtype, Dtype::kBF16);
  EXPECT_EQ(b.shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(b.bytes.data()), b.bytes.size()), "efgh");
  EXPECT_EQ(content->metadata.at("format"), "pt");
}

TEST(Safetensors, RefusesWhatIsNotWhole) {
  const std::string one = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_EQ(safetensors_error(one, "abcd"), "");
  EXPECT_EQ(safetensors_error(one, "abc"), "f.a.data_offsets[1]: expected an integer from 0 to 3, got 4");
  EXPECT_EQ(safetensors_error(one, "abcde"),
            "f: expected tensors to cover all 5 bytes after the header, got 4");
  EXPECT_EQ(safetensors_error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "abcd"),
            "f.a.data_offsets: expected 8 bytes, as dtype and shape ask for, not 4, got an array of 2 items");
  EXPECT_EQ(safetensors_error(R"({"a":{"dtype":"F3","shape":[1],"data_offsets":[0,4]}})", "abcd"),
            "f.a.dtype: expected a dtype of safetensors (F32, BF16, F16, ...), got \"F3\"");
  EXPECT_EQ(safetensors_error(
                R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],)"
                R"("data_offsets":[1,3]}})",
                "abc"),
            "f: tensor 'b': expected its bytes to begin at 2, where those before it end, got 1");
  EXPECT_EQ(safetensors_error(
                R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],)"
                R"("data_offsets":[2,3]}})",
                "abc"),
            "f: tensor 'b': expected its bytes to begin at 1, where those before it end, got 2");
  EXPECT_EQ(safetensors_error(
                R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"I8","shape":[1],)"
                R"("data_offsets":[0,1]}})",
                "a"),
            "f: expected a header that names each tensor once, got 2 names of which 1 differ");
  // 2^48 * 2^48 bytes are 0 modulo 2^64.
  EXPECT_NE(safetensors_error(
                R"({"a":{"dtype":"U8","shape":[281474976710656,281474976710656],"data_offsets":[0,0]}})", ""),
            "");
  for (const char* header :
       {"", "[]", "{", "null", " {}", R"({"a":1})", R"({"a":{}})", R"({"__metadata__":{"a":1}})",
        R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})",
        R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})"})
    EXPECT_NE(safetensors_error(header, "a"), "") << header;
  for (const std::string& file :
       {std::string(), std::string("1234567"), std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10),
        std::string("\x03\0\0\0\0\0\0\0{}", 10)})
    EXPECT_FALSE(parse_safetensors(as_bytes(file), "f").ok());
}

TEST(Safetensors, DoesNotWaitForAPipesWriter) {
  const auto folder = TemporaryFolder::create();
  const auto pipe = folder->path() / "model.safetensors";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto opened = SafetensorsFile::open(pipe);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().message, pipe.string() + ": expected a regular file");
}

// Whatever is changed in a file, it is refused, or every tensor is inside it and is as large as it says.
TEST(Safetensors, ChangedBytesNeverLeadOutside) {
  const std::string whole = safetensors_bytes(
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("v":{"dtype":"I64","shape":[1],"data_offsets":[24,32]}})",
      std::string(32, 'x'));
  std::mt19937 random(1);
  const std::string likely = "0123456789[]{},:\"-.eE \0\xff";
  size_t accepted = 0;
  for (int turn = 0; turn < 30000; ++turn) {
    std::string file = whole;
    for (unsigned change = 0, changes = 1 + random() % 3; change < changes; ++change) {
      const size_t at = random() % file.size();
      switch (random() % 4) {
        case 0:
          file[at] = static_cast<char>(random());
          break;
        case 1:
          file[at] = likely[random() % likely.size()];
          break;
        case 2:
          file.resize(at);
          break;
        default:
          file.insert(at, 1, likely[random() % likely.size()]);
      }
      if (file.empty()) break;
    }
    const auto content = parse_safetensors(as_bytes(file), "f");
    if (!content.ok()) continue;
    ++accepted;
    const auto* begin = reinterpret_cast<const std::byte*>(file.data());
    for (const auto& [name, view] : content->tensors) {
      ASSERT_GE(view.bytes.data(), begin);
      ASSERT_LE(view.bytes.data() + view.bytes.size(), begin + file.size());
      ASSERT_EQ(view.bytes.size(), (TensorInfo{name, view.dtype, view.shape}.bytes()));
    }
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_LT(accepted, 29000u);
}

class SafetensorsFiles : public testing::Test {
 protected:
  SafetensorsFiles() : folder_(*TemporaryFolder::create()) {}
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  TemporaryFolder folder_;
};

void write_all(const std::filesystem::path& path, const std::vector<TensorInfo>& tensors, char fill) {
  auto writer = SafetensorsWriter::create(path, tensors);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  for (const auto& tensor : tensors) {
    const std::string bytes(tensor.bytes(), fill++);
    ASSERT_TRUE(writer->append(as_bytes(bytes)).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
}

TEST_F(SafetensorsFiles, WhatIsWrittenIsReadAgain) {
  const std::vector<TensorInfo> tensors = {
      {"z", Dtype::kF32, {2, 2}}, {"a", Dtype::kBF16, {3}}, {"s", Dtype::kI64, {}}};
  write_all(path("x.safetensors"), tensors, 'p');
  const auto file = SafetensorsFile::open(path("x.safetensors"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 3u);
  const auto& a = file->tensors().find("a")->second;
  EXPECT_EQ(a.bytes.size(), 6u);
  EXPECT_EQ(static_cast<char>(a.bytes[5]), 'q');
  EXPECT_EQ(reinterpret_cast<uintptr_t>(file->tensors().find("z")->second.bytes.data()) % 8, 0u);
}

TEST_F(SafetensorsFiles, NothingIsSeenOfAFileThatIsNotFinished) {
  {
    auto writer = SafetensorsWriter::create(path("x.safetensors"), {{"a", Dtype::kF32, {4}}});
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->append(as_bytes("1234")).ok());
    EXPECT_FALSE(std::filesystem::exists(path("x.safetensors")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SafetensorsFiles, ShardsAreOneCheckpoint) {
  const std::vector<TensorInfo> tensors = {
      {"a", Dtype::kF32, {4}}, {"b", Dtype::kF32, {4}}, {"big", Dtype::kF32, {100}}, {"c", Dtype::kF32, {1}}};
  EXPECT_EQ(plan_shards(tensors, 1000).shards.size(), 1u);
  const auto plan = plan_shards(tensors, 40);
  ASSERT_EQ(plan.shards.size(), 3u);
  EXPECT_EQ(plan.shards[1].file, "model-00002-of-00003.safetensors");
  for (const auto& shard : plan.shards) write_all(path(shard.file), shard.tensors, 'a');
  ASSERT_TRUE(write_file_atomically(path("model.safetensors.index.json"), plan.index).ok());
  const auto checkpoint = Checkpoint::open(folder_.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->names().size(), 4u);
  EXPECT_EQ(static_cast<char>(checkpoint->find("b")->bytes[0]), 'b');
  EXPECT_EQ(checkpoint->find("d"), nullptr);

  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string index = plan.index;
    index.replace(index.find(from), from.size(), to);
    EXPECT_TRUE(write_file_atomically(path("model.safetensors.index.json"), index).ok());
    const auto opened = Checkpoint::open(folder_.path());
    return opened.ok() ? std::string() : opened.error().message;
  };
  EXPECT_TRUE(broken("\"b\":", "\"d\":").find("expected tensor 'd', which") != std::string::npos);
  EXPECT_TRUE(broken("model-00002-of-00003", "../x")
                  .ends_with("expected the name of a file in the same folder, got \"../x.safetensors\""));
  EXPECT_TRUE(broken("\"a\": \"model-00001-of-00003.safetensors\",", "").find("tensor 'a' is not what") !=
              std::string::npos);
  EXPECT_NE(broken("model-00002-of-00003", "model-00004-of-00003"), "");
}

using StagedFolders = SafetensorsFiles;
TEST_F(StagedFolders, AppearWholeOrNotAtAll) {
  {
    auto staged = StagedFolder::create(path("out"));
    ASSERT_TRUE(staged.ok());
    ASSERT_TRUE(write_file_atomically(staged->staged() / "f", "x").ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  auto staged = StagedFolder::create(path("out") / "");
  ASSERT_TRUE(staged.ok());
  ASSERT_TRUE(write_file_atomically(staged->staged() / "f", "x").ok());
  ASSERT_TRUE(staged->publish().ok());
  EXPECT_EQ(*read_file(path("out/f")), "x");
  EXPECT_FALSE(StagedFolder::create(path("out")).ok());
}

}  // namespace
}  // namespace nereid::lm
