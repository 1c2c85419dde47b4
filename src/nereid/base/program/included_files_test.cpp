#include "nereid/base/program/included_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "nereid/base/file.h"

namespace nereid {
namespace {

class IncludedFiles : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root() / path).parent_path());
    std::ofstream(root() / path) << text;
  }
  std::filesystem::path root() const { return folder_->path(); }
  std::string with(const std::string& source) const {
    auto made = with_included_files(source, {root() / "here", root() / "there"});
    return made.ok() ? *made : "error: " + made.error().message;
  }
  Result<TemporaryFolder> folder_ = TemporaryFolder::create();
};

TEST(ImportedNames, OfEveryFormOfTheStatement) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(imported_names("import a, b.c as d\n"), (Names{"a", "b", "b.c"}));
  EXPECT_EQ(imported_names("from a.b import (c as x,\n  d,  # import e\n)\n"),
            (Names{"a", "a.b", "a.b.c", "a.b.d"}));
  EXPECT_EQ(imported_names("def f():\n    import a; from b import \\\n        c\nif x: import d\n"),
            (Names{"a", "b", "b.c", "d"}));
  EXPECT_EQ(imported_names("'''\nimport a\n'''\ns = \"\"\"x\\\"\"\"\nimport b\"\"\"  # import c\n"), Names{});
  EXPECT_EQ(imported_names("from . import x\nfrom .y import z\nfrom ..w import v\n", "p.q"),
            (Names{"p", "p.q", "p.q.x", "p.q.y", "p.q.y.z", "p.w", "p.w.v"}));
  EXPECT_EQ(imported_names("from . import x\nfrom ...far import y\n"), Names{});
  EXPECT_EQ(imported_names("import .etc.passwd, a..b, c.\nimport ..\nfrom a import .b\n"), Names{"a"});
  EXPECT_EQ(imported_names("from a import *\nimported = 1\nfrom_ = 2"), Names{"a"});
}

TEST_F(IncludedFiles, FollowImportsAndTakeNothingElse) {
  write("here/layers.py", "from pkg.deep import thing\r\n\r\nX = 1");
  write("here/pkg/__init__.py", "");
  write("here/pkg/deep.py", "from . import near\nfrom .sub import *\n");
  write("here/pkg/near.py", "import torch\n");
  write("there/pkg/sub.py", "late = 1\n");
  write("here/secret.py", "KEY = 1\n");
  write("there/far.py", "far = 1\n");
  write("here/data.json", "{}");
  const std::string source = "import layers, torch\nimport far  # not secret\n";
  const std::string made = with(source);
  EXPECT_TRUE(made.starts_with(source + "# nereid-include far.py\n#| far = 1\n")) << made;
  EXPECT_NE(made.find("# nereid-include layers.py\n#| from pkg.deep import thing\n#|\n#| X = 1\n"),
            made.npos);
  EXPECT_NE(made.find("# nereid-include pkg/__init__.py\n# nereid-include pkg/deep.py\n"), made.npos) << made;
  EXPECT_NE(made.find("pkg/near.py"), made.npos);
  EXPECT_NE(made.find("# nereid-include pkg/sub.py\n#| late = 1\n"), made.npos);
  EXPECT_EQ(made.find("KEY"), made.npos);
  EXPECT_EQ(without_included_files(made), source);
  EXPECT_EQ(source + included_files(made), made);
  EXPECT_EQ(with(made), made);
  EXPECT_EQ(with("import torch\n"), "import torch\n");
}

TEST_F(IncludedFiles, ALinkOutOfTheFolderIsAnError) {
  write("outside/key.py", "KEY = 1\n");
  write("here/near.py", "X = 1\n");
  std::filesystem::create_symlink(root() / "outside/key.py", root() / "here/key.py");
  std::filesystem::create_directory_symlink(root() / "outside", root() / "here/out");
  std::filesystem::create_symlink(root() / "here/near.py", root() / "here/alias.py");
  EXPECT_NE(with("import key\n").find("got a link to"), std::string::npos);
  EXPECT_NE(with("import out.key\n").find("got a link to"), std::string::npos);
  EXPECT_NE(with("import alias\n").find("#| X = 1"), std::string::npos);
}

TEST_F(IncludedFiles, OtherFilesAreIncludedByName) {
  write("here/data.bin", std::string(80, '\0') + "\xff");
  const auto made = with_data_file("x = 1", root() / "here/data.bin", "sub/data.bin");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*made,
            "x = 1\n# nereid-include-data sub/data.bin\n#| " + std::string(100, 'A') + "\n#| AAAAAAD/\n");
  EXPECT_EQ(without_included_files(*made), "x = 1\n");
  EXPECT_FALSE(with_data_file("", root() / "here/none", "none").ok());
}

TEST_F(IncludedFiles, TooManyAreAnError) {
  write("here/large.py", "x = '" + std::string(kMostIncludedBytes, 'x') + "'\n");
  EXPECT_TRUE(with("import large\n").starts_with("error: "));
  std::string source;
  for (size_t i = 0; i <= kMostIncludedFiles; ++i) {
    write(fmt::format("here/m{}.py", i), "");
    source += fmt::format("import m{}\n", i);
  }
  EXPECT_NE(with(source).find("the task imports more than"), std::string::npos);
}

TEST_F(IncludedFiles, TheRootAndTheHomeDirectoryAreRefused) {
  const std::string before = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  std::filesystem::create_directories(root() / "users/me/project");
  ::setenv("HOME", (root() / "users/me").c_str(), 1);
  const auto said = [](const std::filesystem::path& folder) {
    const auto status = may_be_included(folder);
    return status.ok() ? "" : status.error().message;
  };
  EXPECT_EQ(said(root() / "users/me/project"), "");
  EXPECT_NE(said(root() / "users/me").find("the home directory"), std::string::npos);
  EXPECT_NE(said(root() / "users/me/project/..").find("the home directory"), std::string::npos);
  EXPECT_NE(said(root() / "users").find("above the home directory"), std::string::npos);
  EXPECT_NE(said("/").find("the root"), std::string::npos);
  EXPECT_NE(said(root() / "none").find("No such file"), std::string::npos);
  ::setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace nereid
