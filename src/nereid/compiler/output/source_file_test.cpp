#include "nereid/compiler/output/source_file.h"

#include <gtest/gtest.h>

namespace nereid::compiler {
namespace {

constexpr const char* kSource = R"py("""A module."""
import torch
import torch.nn as nn

WIDTH = 4
UNUSED = 2 * WIDTH
HALF = WIDTH / 2  # of it
torch.manual_seed(1)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return helper(self.fc(x))


def helper(x):
    return x.relu()


def unused(x):
    return x


class Model(nn.Module):
    """What it is:
class Model in a string
"""
    scale = 2 * HALF

    def __init__(self, depth=2):
        super(Model, self).__init__()
        self.blocks = self._make(
            depth,
        )

    def _make(self, depth):
        return nn.ModuleList([Block(WIDTH) for _ in range(depth)])

    def only_in_forward(self, x):
        return unused(x)

    @torch.no_grad()
    def forward(
        self, x, mask=(1, 2), *rest,
    ) -> torch.Tensor:
        return self.only_in_forward(x)


def get_inputs():
    return [torch.randn(3, WIDTH)]


if __name__ == "__main__":
    unused(1)
)py";

TEST(SourceFile, TakesWhatTheConstructorNeeds) {
  const auto read = read_source("model.py", kSource, "Model", "ModelNew");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const SourceFile& file = read.value();
  EXPECT_EQ(file.bases, "nn.Module");
  ASSERT_EQ(file.imports.size(), 2);
  EXPECT_NE(file.members.find("super().__init__()"), std::string::npos) << file.members;
  EXPECT_NE(file.members.find("def _make"), std::string::npos);
  EXPECT_NE(file.members.find("scale = 2 * HALF"), std::string::npos);
  EXPECT_EQ(file.members.find("only_in_forward"), std::string::npos);
  EXPECT_EQ(file.members.find("def forward"), std::string::npos);
  for (const char* name :
       {"WIDTH = 4", "HALF = WIDTH / 2", "torch.manual_seed(1)", "class Block", "def helper"})
    EXPECT_NE(file.needed.find(name), std::string::npos) << name;
  for (const char* name : {"def unused", "UNUSED", "get_inputs", "__main__", "A module"})
    EXPECT_EQ(file.needed.find(name), std::string::npos) << name;
}

TEST(SourceFile, ANameThatIsAParameterNeedsNothing) {
  const auto read = read_source("model.py", R"py(
import torch.nn as nn

width = 4
depth = 2
scale = 3


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.fc = nn.Linear(width, width)


class Model(nn.Module):
    def __init__(self, width, times=scale):
        super().__init__()
        self.block = Block(width)

    def forward(self, x):
        return x * depth
)py",
                                "Model", "ModelNew");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_NE(read->needed.find("class Block"), std::string::npos) << read->needed;
  EXPECT_NE(read->needed.find("scale = 3"), std::string::npos) << read->needed;
  EXPECT_EQ(read->needed.find("width = 4"), std::string::npos) << read->needed;
  EXPECT_EQ(read->needed.find("depth = 2"), std::string::npos) << read->needed;
}

TEST(SourceFile, LeavesProseOut) {
  EXPECT_EQ(without_prose(R"py("""A module."""
# About N.
N = 4  # of it

class Empty(nn.Module):
    """Nothing
    # in it"""

class Model(nn.Module):
    'One line.'

    def f(self):
        """Does nothing."""
    def g(self, text="# no comment"):
        """Does something."""
        # here
        return ("""kept
# kept""", text)  # gone
)py"),
            R"py(N = 4

class Empty(nn.Module):

    pass
class Model(nn.Module):

    def f(self):
        pass
    def g(self, text="# no comment"):
        return ("""kept
# kept""", text)
)py");
}

TEST(SourceFile, ReadsTheParametersOfForward) {
  const auto read = read_source("model.py", kSource, "Model", "ModelNew");
  ASSERT_TRUE(read.ok());
  const auto& parameters = read.value().parameters;
  ASSERT_EQ(parameters.size(), 3);
  EXPECT_EQ(parameters[1].name, "mask");
  EXPECT_EQ(parameters[2].name, "rest");
  EXPECT_TRUE(parameters[2].rest);
}

TEST(SourceFile, AForwardThatIsInheritedIsFound) {
  const auto read = read_source(
      "model.py",
      "class Base:\n    def forward(self, y):\n        return y\n\nclass Model(Base):\n    pass\n", "Model",
      "ModelNew");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().parameters.at(0).name, "y");
  EXPECT_NE(read.value().needed.find("class Base"), std::string::npos);
}

TEST(SourceFile, AnAliasIsTheClassThatItNames) {
  const auto read = read_source("model.py", R"py(import torch
class Gate(torch.nn.Module):
    def __init__(self):
        super(Gate, self).__init__()

    def forward(self, x, *, y=None, **rest):
        return x
Best = Gate
Model = Best  # the best
)py",
                                "Model", "ModelNew");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->bases, "torch.nn.Module");
  EXPECT_EQ(read->needed, "");
  EXPECT_NE(read->members.find("super().__init__()"), std::string::npos);
  EXPECT_EQ(read->keywords, "rest");
  EXPECT_EQ(argument_text(*read, "y"), "y");
  EXPECT_EQ(argument_text(*read, "z"), "rest[\"z\"]");
  EXPECT_EQ(argument_text(*read, 0), "x");
}

TEST(SourceFile, AForwardOfSeveralBasesIsFound) {
  const auto read = read_source("model.py", R"py(
class Root(nn.Module):
    def forward(self, deep):
        return deep
class Says:
    pass
class Middle(Says, Root):
    pass
class Model(Says, Middle):
    pass
)py",
                                "Model", "ModelNew");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->signature, "self, deep");
  EXPECT_EQ(read->bases, "Says, Middle");
}

TEST(SourceFile, WhatTheFileDoesNotHoldIsTakenFromAnInstance) {
  for (const char* source : {"from torch.nn import Linear as Model\n", "Model = nn.Linear\n",
                             "def Model(n):\n    return nn.Linear(n, n)\n"}) {
    EXPECT_FALSE(read_source("model.py", source, "Model", "ModelNew").ok());
    const auto read = read_source("model.py", source, "Model", "ModelNew", {}, "self, x0");
    ASSERT_TRUE(read.ok()) << source;
    EXPECT_NE(read->members.find("vars(self).update(vars(Model(*arguments, **named)))"), std::string::npos);
    EXPECT_EQ(read->signature, "self, x0");
    EXPECT_EQ(read->needed.empty(), std::string(source).starts_with("from")) << read->needed;
  }
  const auto read =
      read_source("model.py", "class Model(nn.ReLU):\n    pass\n", "Model", "ModelNew", {}, "self, x");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->bases, "nn.ReLU");
  EXPECT_EQ(read->members, "    pass\n");
}

TEST(SourceFile, SaysWhatIsMissing) {
  EXPECT_FALSE(read_source("model.py", "x = 1\n", "Model", "ModelNew").ok());
  const auto read = read_source("model.py", "class Model:\n    pass\n", "Model", "ModelNew");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("model.py"), std::string::npos);
}

TEST(SourceFile, StatementsEndAConstructor) {
  const std::string two =
      "    @f\n    def __init__(self, a,\n                 b=2):\n        self.b = [\n    a]\n\n    n = 3\n";
  EXPECT_EQ(with_constructor(two, {"self.c = 1"}),
            "    @f\n    def __init__(self, a,\n                 b=2):\n        self.b = [\n    a]\n        "
            "self.c = 1\n\n"
            "    n = 3\n");
  EXPECT_EQ(with_constructor("    n = 3\n", {"self.c = 1"}), "");
  EXPECT_EQ(
      with_constructor("    def __init__(self):\n        if self.f():\n            return\n        g()\n",
                       {"self.c = 1"}),
      "");
}

}  // namespace
}  // namespace nereid::compiler
