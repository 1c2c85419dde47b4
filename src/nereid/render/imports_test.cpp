#include "nereid/render/imports.h"

#include <gtest/gtest.h>

namespace nereid::render {
namespace {

std::string printed(const std::vector<std::string>& statements, const std::string& code) {
  Imports imports;
  for (const auto& statement : statements) imports.add(statement);
  return imports.text(code);
}

TEST(Imports, InSectionsAndSorted) {
  EXPECT_EQ(printed({"import torch.nn.functional as F", "import triton.language as tl",
                     "import torch.nn as nn", "from .layers import Gate", "import math, os.path",
                     "from dataclasses import dataclass", "import torch",
                     "from __future__ import annotations", "from torch import (\n    Tensor,\n    nn,\n)"},
                    "F tl nn Gate math os dataclass torch Tensor"),
            "from __future__ import annotations\n\n"
            "import math\nimport os.path\nfrom dataclasses import dataclass\n\n"
            "import torch\nimport torch.nn.functional as F\nimport triton.language as tl\n"
            "from torch import Tensor, nn\n\n"
            "from .layers import Gate\n");
}

TEST(Imports, WhatIsNotUsedIsLeftOutOrMarked) {
  const std::vector<std::string> statements = {"import torch", "import math", "from torch import nn, Tensor",
                                               "import operators_of_mine", "from library import a, b"};
  EXPECT_EQ(printed(statements, "torch.math.nn(a)"),
            "import operators_of_mine  # noqa: F401\nimport torch\nfrom library import a, b  # noqa: F401\n");
  EXPECT_EQ(printed({"from torch import Tensor"}, "def f(x: \"list[Tensor]\"): pass"),
            "from torch import Tensor\n");
}

TEST(Imports, WhatIsNoPlainImportStaysAsItIs) {
  EXPECT_EQ(printed({"from layers import *\n", "import torch  # first\n"}, ""),
            "from layers import *\nimport torch  # first\n");
}

TEST(Imports, LongOnesAreBroken) {
  const std::string name(40, 'a');
  EXPECT_EQ(printed({"from m import " + name + "1, " + name + "2, " + name + "3"},
                    name + "1 " + name + "2 " + name + "3"),
            "from m import (\n    " + name + "1,\n    " + name + "2,\n    " + name + "3,\n)\n");
}

}  // namespace
}  // namespace nereid::render
