// `nereid import-gguf`: this process becomes the Python program that converts the file.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include "nereid/base/program/installation.h"
#include "nereid/cli/command.h"

namespace nereid::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  nereid import-gguf SmolLM2-135M-Instruct.Q4_1.gguf -o start    a folder with model.safetensors
  nereid generate --model start --chat --prompt "Say hello."
  nereid import-gguf model.gguf -o start --tokenizer tokenizer.json

Architectures: llama, qwen2, qwen3. Weights may be quantised in any way that the Python package gguf reads.
A run file starts from the folder by `start_from = "start"`.)";

struct ImportGgufOptions {
  std::string file, output, dtype = "bfloat16", tokenizer;
};

Result<Answer> exec_converter(const ImportGgufOptions& options, bool json) {
  namespace fs = std::filesystem;
  const fs::path output = fs::absolute(options.output).lexically_normal();
  const fs::path folder = output.has_filename() ? output : output.parent_path();
  std::error_code failure;
  if (!fs::is_directory(folder.parent_path(), failure))
    return input_error("-o {}: there is no folder {}", options.output, folder.parent_path().string());
  if (fs::exists(folder, failure) && !(fs::is_directory(folder, failure) && fs::is_empty(folder, failure)))
    return input_error("-o {}: expected a new or an empty folder", options.output);
  NEREID_TRY(const Installation installation, Installation::locate());
  std::vector<std::string> words = {
      installation.python.string(),
      "-I",
      (installation.package / "_formats" / "gguf_checkpoint.py").string(),
      options.file,
      folder.string(),
      Json{{"dtype", options.dtype}, {"tokenizer", options.tokenizer}, {"json", json}}.dump()};
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(words[0].c_str(), pointers.data());
  return our_error("{}: {}", words[0], std::strerror(errno));
}

}  // namespace

void add_import_gguf_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<ImportGgufOptions>();
  CLI::App* command = app.add_subcommand("import-gguf", "Convert a GGUF file into a checkpoint folder");
  command->footer(kExamples);
  command->add_option("FILE", options->file, "GGUF file")->required()->check(CLI::ExistingFile);
  command->add_option("-o,--output", options->output, "Folder to write, new or empty")->required();
  command->add_option("--dtype", options->dtype, "Type of the weights: bfloat16, float16 or float32")
      ->check(CLI::IsMember({"bfloat16", "float16", "float32"}))
      ->capture_default_str();
  command->add_option("--tokenizer", options->tokenizer, "tokenizer.json to copy (default: made of the file)")
      ->check(CLI::ExistingFile);
  add_json_flag(*command, chosen, "Print one JSON object: architecture, parameters, bytes, files");
  command->callback([options, &chosen] {
    chosen.run = [options, &chosen] { return exec_converter(*options, chosen.json); };
  });
}

}  // namespace nereid::cli
