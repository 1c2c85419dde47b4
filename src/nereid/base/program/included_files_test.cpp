#include "nereid/base/program/included_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

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

TEST(AbsoluteImports, ReplaceRelativeOnesOfStatementsAlone) {
  const auto of = [](const std::string& source) { return with_absolute_imports(source, "a.b"); };
  EXPECT_EQ(of("from .layers import Gate"), "from a.b.layers import Gate");
  EXPECT_EQ(of("x = 1; from . import (\n  c,  # from .d import e\n  f)\nfrom ..g.h import *\n"),
            "x = 1; from a.b import (\n  c,  # from .d import e\n  f)\nfrom a.g.h import *\n");
  EXPECT_EQ(of("try:\n    from \\\n  .c import d\nexcept ImportError: from .e import d\n"),
            "try:\n    from \\\n  a.b.c import d\nexcept ImportError: from a.b.e import d\n");
  for (const char* same :
       {"'''\nfrom .c import d\n'''\n", "# from .c import d", "from ...out import d",
        "yield_from = 1\nx = (1 if y else .5)\n", "from c import d\n", "def f():\n    yield from .5, 6\n"})
    EXPECT_EQ(of(same), same);
  EXPECT_EQ(with_absolute_imports("from .c import d", ""), "from .c import d");
}

TEST_F(IncludedFiles, OfAPackageAreFoundByItsInitFiles) {
  write("here/top/__init__.py", "from . import common\n");
  write("here/top/common.py", "X = 1\n");
  write("here/top/models/__init__.py", "");
  write("here/top/models/layers.py", "from ..common import X\n");
  write("here/top/models/model.py", "");
  write("here/near.py", "KEY = 1\n");
  const auto own = package_of(root() / "here/top/models/model.py");
  EXPECT_EQ(own.name, "top.models");
  EXPECT_EQ(own.folder, std::filesystem::canonical(root() / "here/top"));
  EXPECT_EQ(package_of(root() / "here/top/models/model.py", root() / "here/top").name, "models");
  EXPECT_EQ(package_of(root() / "here/near.py").name, "");
  const auto task = [&](const std::string& source, const std::filesystem::path& within = {}) {
    auto made = task_with_files(source, root() / "here/top/models/model.py", {}, within);
    return made.ok() ? *made : "error: " + made.error().message;
  };
  EXPECT_EQ(task("from .layers import X\nimport near\n"),
            "from top.models.layers import X\nimport near\n# nereid-include top/__init__.py\n"
            "#| from . import common\n# nereid-include top/common.py\n#| X = 1\n"
            "# nereid-include top/models/__init__.py\n# nereid-include top/models/layers.py\n"
            "#| from ..common import X\n");
  EXPECT_EQ(task("from ..common import X\n", root() / "here/top"), "from ..common import X\n");
  EXPECT_EQ(task("import layers\n"),
            "import layers\n# nereid-include layers.py\n#| from ..common import X\n");
  std::filesystem::create_symlink(root() / "here/near.py", root() / "here/top/out.py");
  EXPECT_NE(task("from ..out import KEY\n").find("got a link to"), std::string::npos);
}

TEST_F(IncludedFiles, OfAHomeDirectoryAreNoPackage) {
  const std::string before = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  write("users/me/__init__.py", "");
  write("users/me/proj/__init__.py", "");
  write("users/me/proj/model.py", "");
  ::setenv("HOME", (root() / "users/me").c_str(), 1);
  EXPECT_EQ(package_of(root() / "users/me/proj/model.py").name, "proj");
  EXPECT_EQ(package_of(root() / "users/me/model.py").name, "");
  ::setenv("HOME", before.c_str(), 1);
}

TEST_F(IncludedFiles, ComeWithATextByTheirPaths) {
  const std::map<std::string, std::string> files = {
      {"p/__init__.py", ""}, {"p/layers.py", "from . import deep\n"}, {"p/deep.py", ""}, {"p/unused.py", ""}};
  const auto made = text_with_files("from .layers import X\n", "p/model.py", files);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(*made,
            "from p.layers import X\n# nereid-include p/__init__.py\n# nereid-include p/deep.py\n"
            "# nereid-include p/layers.py\n#| from . import deep\n");
  for (const char* bad :
       {"../p.py", "/etc/p.py", "p/../q.py", "p.txt", ".py", "p/.py", "a b.py", "p//q.py", "p.py\nX = 1"})
    EXPECT_FALSE(text_with_files("import p\n", "", {{bad, ""}}).ok()) << bad;
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
  write("here/large.py", "x = '" + std::string(kMaxIncludedBytes, 'x') + "'\n");
  EXPECT_TRUE(with("import large\n").starts_with("error: "));
  std::string source;
  for (size_t i = 0; i <= kMaxIncludedFiles; ++i) {
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
