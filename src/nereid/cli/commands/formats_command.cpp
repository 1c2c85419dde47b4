// `nereid import` and `nereid package`: tasks from, and kernels to, the formats of others. The Python
// programs next to the tracer read and write them; nothing of what they read is run.
#include <CLI/CLI.hpp>
#include <memory>

#include "nereid/base/program/given_file.h"
#include "nereid/base/program/installation.h"
#include "nereid/cli/command.h"
#include "nereid/cli/output.h"
#include "nereid/sandbox/zygote/subprocess.h"
#include "nereid/store/identity.h"

namespace nereid::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kFormatSeconds = 600;
constexpr size_t kMaxFormatBytes = size_t{256} << 20;

constexpr const char* kImportExamples = R"(Formats:
  flashinfer-bench  definitions, workloads and solutions: JSON and JSONL files, one or a folder of them
  sol-execbench     likewise
  backendbench      a folder such as add__Tensor with add__Tensor_implementation*.py, or a folder of those
  tritonbench       files with functions, a line of 146 #, and test functions that call them

Examples:
  nereid import flashinfer-bench dataset/ -o tasks/     one task for each definition and workload
  nereid verify --batch tasks/pairs.jsonl               judge the solutions that came with them
  nereid optimize tasks/gemm.py -o fast.py

Solutions become candidates: FOLDER/candidates/, paired in FOLDER/pairs.jsonl. Imported code runs only when a
task is judged, in the sandbox. Exit code 1: nothing could be imported.)";

constexpr const char* kPackageExamples = R"(Formats:
  hf-kernels        a repository for the package `kernels`: one layer per file, named after it
  flashinfer-bench  one solution per file; one trace per verdict of a .jsonl file
  backendbench      generated_kernels/add__Tensor/add__Tensor_implementation_nereid.py

Examples:
  nereid package fast/ --format hf-kernels -o my-kernels/ --name my-kernels
  nereid package fast/add__Tensor.py --format backendbench -o generated_kernels/
  nereid package fast/gemm.py --format flashinfer-bench -o dataset/ --definition gemm
  nereid import flashinfer-bench dataset/ -o tasks/
  nereid verify --batch tasks/pairs.jsonl --time -o verdicts.jsonl
  nereid package verdicts.jsonl --format flashinfer-bench -o dataset/           dataset/traces/gemm.jsonl

The files are those of `nereid optimize` and `nereid lower`, with the guard at their end. A call of a layer
that was not verified runs the layer's own forward.)";

struct ImportOptions {
  std::string format, path, output;
};
struct PackageOptions {
  std::string path, format, output;
  std::string name = "nereid-kernels", license = "unlicensed", author = "nereid", operation, definition,
              hardware;
  int version = 1;
  std::vector<std::string> backends = {"cuda"};
};

Result<Json> run_python(const char* program, const std::vector<std::string>& arguments) {
  NEREID_TRY(const Installation installation, Installation::locate());
  sandbox::SpawnSpec spec{
      .words = {installation.python.string(), "-I", (installation.package / program).string()},
      .environment = sandbox::own_environment()};
  spec.words.insert(spec.words.end(), arguments.begin(), arguments.end());
  NEREID_TRY(const std::string text,
             sandbox::run_program(std::move(spec), Deadline::after(kFormatSeconds), kMaxFormatBytes));
  NEREID_TRY(Json answer, parse_json(text, program));
  if (answer.contains("not_written")) return our_error("{}", answer["not_written"].get<std::string>());
  return answer;
}

// A folder that can be made: its parent is there.
Status can_be_folder(const std::string& output) {
  const fs::path path = fs::absolute(output).lexically_normal();
  const fs::path parent = path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
  std::error_code failure;
  if (fs::exists(path, failure) && !fs::is_directory(path, failure))
    return input_error("-o {}: expected a folder, got a file", output);
  if (!fs::is_directory(parent, failure))
    return input_error("-o {}: there is no folder {}", output, parent.string());
  return ok_status();
}

Status is_there(const std::string& path) {
  std::error_code failure;
  if (!fs::exists(path, failure)) return input_error("{}: no such file or folder", path);
  return fs::is_directory(path, failure) ? ok_status() : can_be_read(path);
}

void print_skipped(const Json& skipped) {
  for (const Json& one : skipped)
    fmt::print(stderr, "nereid: skipped {}\n",
               printable(one.is_string() ? one.get<std::string>()
                                         : one.value("what", "") + ": " + one.value("why", "")));
}

Result<Answer> run_import(const ImportOptions& options, bool json) {
  NEREID_TRY_STATUS(is_there(options.path));
  NEREID_TRY_STATUS(can_be_folder(options.output));
  NEREID_TRY(const Json made,
             run_python("_formats/task_formats.py", {options.format, options.path, options.output}));
  print_skipped(made.at("skipped"));
  const size_t tasks = made.at("tasks").size(), candidates = made.at("candidates").size();
  if (json) {
    NEREID_TRY_STATUS(write_stdout(json_line(made)));
  } else if (tasks > 0) {
    std::string text;
    for (const Json& task : made.at("tasks")) text += task.get<std::string>() + "\n";
    NEREID_TRY_STATUS(write_text(text));
    fmt::print(stderr, "{} task{}, {} candidate{}\n", tasks, tasks == 1 ? "" : "s", candidates,
               candidates == 1 ? "" : "s");
  }
  return tasks > 0 ? Answer::kYes : Answer::kNo;
}

Result<Answer> run_package(const PackageOptions& options, bool json) {
  NEREID_TRY_STATUS(is_there(options.path));
  NEREID_TRY_STATUS(can_be_folder(options.output));
  const Json more = {{"name", options.name},
                     {"version", options.version},
                     {"license", options.license},
                     {"author", options.author},
                     {"operator", options.operation},
                     {"definition", options.definition},
                     {"backends", options.backends},
                     {"hardware", options.hardware.empty() ? store::gpu_name() : options.hardware}};
  NEREID_TRY(const Json made, run_python("_formats/package_formats.py",
                                         {options.format, options.path, options.output, more.dump()}));
  if (made.contains("wrong")) return input_error("{}", made["wrong"].get<std::string>());
  print_skipped(made.at("skipped"));
  if (json) {
    NEREID_TRY_STATUS(write_stdout(json_line(made)));
  } else {
    std::string text;
    for (const Json& file : made.at("files")) text += file.get<std::string>() + "\n";
    NEREID_TRY_STATUS(write_text(text));
  }
  return Answer::kYes;
}

}  // namespace

void add_formats_commands(CLI::App& app, Chosen& chosen) {
  auto import = std::make_shared<ImportOptions>();
  CLI::App* command = app.add_subcommand("import", "Convert files of other benchmarks into tasks");
  command->footer(kImportExamples);
  command->add_option("FORMAT", import->format, "Format of PATH")
      ->required()
      ->check(CLI::IsMember({"flashinfer-bench", "sol-execbench", "backendbench", "tritonbench"}));
  command->add_option("PATH", import->path, "File or folder in that format")->required();
  command->add_option("-o,--output", import->output, "Folder for tasks and candidates")->required();
  add_json_flag(*command, chosen, "Print one JSON object: tasks, candidates, skipped");
  command->callback(
      [import, &chosen] { chosen.run = [import, &chosen] { return run_import(*import, chosen.json); }; });

  auto package = std::make_shared<PackageOptions>();
  command = app.add_subcommand("package", "Package kernels for Hugging Face's kernels and other formats");
  command->footer(kPackageExamples);
  command
      ->add_option("PATH", package->path,
                   "File that `nereid optimize` wrote, or a folder of them; verdicts of `nereid verify "
                   "--batch`, for traces")
      ->required();
  command->add_option("--format", package->format, "Format to write")
      ->required()
      ->check(CLI::IsMember({"hf-kernels", "flashinfer-bench", "backendbench"}));
  command->add_option("-o,--output", package->output, "Folder to write into")->required();
  command->add_option("--name", package->name, "hf-kernels: name of the repository")->capture_default_str();
  command->add_option("--kernel-version", package->version, "hf-kernels: version of the repository")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_option("--license", package->license, "hf-kernels: license of the kernels")
      ->capture_default_str();
  command
      ->add_option("--backend", package->backends,
                   "hf-kernels: backend of the build, repeatable: cuda, rocm, xpu, cpu")
      ->check(CLI::IsMember({"cuda", "rocm", "xpu", "cpu"}))
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("--author", package->author, "flashinfer-bench: author of the solution")
      ->capture_default_str();
  command->add_option("--definition", package->definition,
                      "flashinfer-bench: definition that is solved (default: the file's name)");
  command->add_option("--hardware", package->hardware,
                      "flashinfer-bench: GPU that timed, for traces (default: this machine's)");
  command->add_option("--operator", package->operation,
                      "backendbench: operator such as add.Tensor (default: the file's name)");
  add_json_flag(*command, chosen, "Print one JSON object: files, skipped");
  command->callback(
      [package, &chosen] { chosen.run = [package, &chosen] { return run_package(*package, chosen.json); }; });
}

}  // namespace nereid::cli
