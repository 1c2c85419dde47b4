#include "nereid/verify/analysis/normal_form.h"

#include <gtest/gtest.h>

namespace nereid::verify {
namespace {

TEST(NormalForm, LeavesOutWhatPeopleRead) {
  EXPECT_EQ(
      normal_form("\"\"\"What it is.\n# no comment\n\"\"\"\nimport torch  # all of it\n\n\n# alone\nx = 1\n"),
      "import torch\nx = 1\n");
  EXPECT_EQ(normal_form("x = 1"), "x = 1\n");
  EXPECT_EQ(normal_form(""), "");
  EXPECT_EQ(normal_form("\n\n# only this"), "");
  EXPECT_EQ(normal_form("def f(\n    a,  # first\n    # none\n    b,\n):\n    return a  \n"),
            "def f(\n    a,\n    b,\n):\n    return a\n");
}

TEST(NormalForm, KeepsWhatTheProgramIs) {
  for (const char* text : {
           "x = '#'\n",
           "x = \"a # b\"\n",
           "x = 'it\\'s # this'\n",
           "x = r'\\\\' + '#'\n",
           "x = '''a\n\n# kept\n   '''\n",
           "class A:\n    \"\"\"Its own.\"\"\"\n    x = 1\n",
           "'a' + f()\n",  // opens the file, and is no docstring
           "x = f'{y}'\n",
           "    indented = 1\n",
           "x = \"\"\n",
           "x = ''\ny = '#'\n",
       })
    EXPECT_EQ(normal_form(text), text);
}

TEST(NormalForm, IsItsOwn) {
  const std::string text = "'''doc'''\nimport a  # b\n\nx = '''\n\n'''  # c\n";
  EXPECT_EQ(normal_form(normal_form(text)), normal_form(text));
  EXPECT_NE(normal_form("x = '''\n'''\n"), normal_form("x = '''\n\n'''\n"));
}

}  // namespace
}  // namespace nereid::verify
