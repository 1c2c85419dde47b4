"""`nereid.rewards`: each adapter on the shape that its trainer sends, judged by the real judge on the CPU.

tests/python/rewards_test.py PATH/TO/nereid
"""

import asyncio
import hashlib
import json
import math
import os
import pathlib
import sys
import tempfile
import types
import unittest

if len(sys.argv) > 1:
    os.environ["NEREID_PROGRAM"] = str(pathlib.Path(sys.argv.pop(1)).resolve())
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "python"), str(TESTS)]

import judge_server  # noqa: E402
import nereid  # noqa: E402
from nereid import rewards  # noqa: E402

REFERENCE, RELU = (TESTS / "tasks/relu.py").read_text(), (TESTS / "honest/relu_one_kernel.py").read_text()
PLAN = "One program handles 1024 elements; ünïcode must not shift the spans.\n"
GOOD = f"{PLAN}```python\n{RELU}```\nThat is all."
WRONG = GOOD.replace("0.0", "0.25")
NOTHING = "I cannot do it."
PROMPT = f"Write Triton for\n```python\n{REFERENCE}```\n"
BROKEN = (
    "class Model:\n    pass\n\n\ndef get_inputs():\n    raise ValueError('empty')\n\n\ndef"
    " get_init_inputs():\n    return []\n"
)
KEYS = {"reward", "scores", "reward_components", "spans", "status", "verdict", "receipt"}


class Adapters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.judge = rewards.configure(
            jobs=2, reward="hierarchical", tasks=TESTS / "tasks", device="cpu", trials=1, seed=3
        )

    @classmethod
    def tearDownClass(cls):
        cls.judge.close()

    def test_one_object_with_components_and_spans(self):
        good, wrong, nothing, fault = self.judge.rewards(
            [PROMPT] * 4, [GOOD, WRONG, NOTHING, GOOD], ["relu", "relu.py", REFERENCE, BROKEN]
        )
        self.assertEqual(
            [one.status for one in (good, wrong, nothing, fault)], ["verified", "refused", "refused", "error"]
        )
        self.assertEqual([one.reward for one in (good, wrong, nothing, fault)], [1.0, 0.0, 0.0, None])
        self.assertEqual([wrong.scores["valid"], nothing.scores["valid"]], [1.0, 0.0])
        self.assertEqual(good.reward_components, {"plan": 1.0, "code": 1.0})
        texts = {span.name: GOOD[span.start : span.end] for span in good.spans}
        self.assertEqual(
            (texts["code"].strip(), texts["plan"].startswith(PLAN.rstrip())), (RELU.strip(), True)
        )
        self.assertEqual(good.receipt["completion"], hashlib.sha256(GOOD.encode()).hexdigest())
        self.assertEqual(good.receipt["reference"], wrong.receipt["reference"])
        for one in (good, wrong, nothing, fault):
            self.assertLessEqual(KEYS, set(json.loads(json.dumps(one.to_dict()))))
        self.assertIn("empty", fault.error)
        with self.assertRaises(ValueError):
            fault.token_rewards([(0, 1)])

    def test_rewards_of_tokens(self):
        (good,) = self.judge.rewards([PROMPT], [GOOD])
        offsets = [(i, i + 7) for i in range(0, len(GOOD), 7)]
        found = good.token_rewards(offsets, rest=-1.0)
        code = next(span for span in good.spans if span.name == "code")
        self.assertEqual(found[0], 1.0)
        self.assertEqual(found[-1], -1.0)
        self.assertEqual(len(found), len(offsets))
        self.assertTrue(
            all(value == 1.0 for value, (begin, _) in zip(found, offsets) if code.start <= begin < code.end)
        )

    def test_chats_and_prompts_that_show_the_task(self):
        chat = [
            {"role": "system", "content": "Answer in Triton."},
            {"role": "user", "content": [{"type": "text", "text": PROMPT}]},
        ]
        answers = [
            [
                {"role": "assistant", "content": WRONG},
                {"role": "user", "content": "No."},
                {"role": "assistant", "content": GOOD},
            ]
        ]
        self.assertEqual(self.judge.rewards([chat], answers)[0].reward, 1.0)
        (missing,) = self.judge.rewards(["Write a kernel."], [GOOD])
        self.assertEqual((missing.status, missing.reward), ("error", None))
        outside, unknown = self.judge.rewards(
            ["", ""], [GOOD, GOOD], ["../honest/relu_one_kernel", "no_such_task"]
        )
        self.assertRegex(outside.error, "below")
        self.assertRegex(unknown.error, "no_such_task")
        with self.assertRaisesRegex(nereid.InputError, "1 prompts, 2 completions"):
            self.judge.rewards([PROMPT], [GOOD, GOOD])

    def test_trl(self):
        columns = dict(completion_ids=[[1], [2], [3]], reference=["relu", "relu", BROKEN], trainer_state=None)
        function = rewards.trl(self.judge)
        self.assertEqual(
            function(prompts=[PROMPT] * 3, completions=[GOOD, WRONG, GOOD], **columns), [1.0, 0.0, None]
        )
        self.assertTrue(function.__name__)
        later = rewards.trl(asynchronous=True)
        self.assertTrue(asyncio.iscoroutinefunction(later))
        self.assertEqual(
            asyncio.run(
                later(
                    prompts=[[{"role": "user", "content": PROMPT}]],
                    completions=[[{"role": "assistant", "content": GOOD}]],
                )
            ),
            [1.0],
        )

    def test_verl(self):
        def score(text, truth, **more):
            return asyncio.run(
                rewards.compute_score(
                    data_source="kernels",
                    solution_str=text,
                    ground_truth=truth,
                    extra_info={"index": 0},
                    **more,
                )
            )

        good, wrong = score(GOOD, "relu"), score(WRONG, {"reference": REFERENCE})
        self.assertEqual((good["score"], good["acc"], wrong["score"], wrong["valid"]), (1.0, 1.0, 0.0, 1.0))
        self.assertEqual(set(good), set(wrong))
        self.assertTrue(all(isinstance(value, float) for value in good.values()))
        with self.assertRaises(nereid.NereidError):
            score(GOOD, BROKEN)

    def test_slime(self):
        sample = types.SimpleNamespace(prompt=PROMPT, response=GOOD, label="relu", metadata={})
        bad = types.SimpleNamespace(prompt=PROMPT, response=WRONG, label="relu", metadata={})
        plain, keyed = types.SimpleNamespace(reward_key=None), types.SimpleNamespace(reward_key="reward")
        self.assertEqual(asyncio.run(rewards.custom_rm(plain, sample)), 1.0)
        self.assertEqual(asyncio.run(rewards.custom_rm(plain, [sample, bad])), [1.0, 0.0])
        self.assertLessEqual(KEYS, set(asyncio.run(rewards.custom_rm(keyed, sample))))
        with self.assertRaises(nereid.NereidError):
            asyncio.run(
                rewards.custom_rm(plain, types.SimpleNamespace(prompt="", response=GOOD, label=BROKEN))
            )

    def test_openrlhf(self):
        answer = rewards.openrlhf_response(
            [PROMPT + GOOD, PROMPT + WRONG, PROMPT + GOOD], [PROMPT] * 3, ["relu", "relu", BROKEN]
        )
        self.assertEqual((answer["rewards"], answer["scores"]), ([1.0, 0.0, None], [1.0, 0.0, None]))
        self.assertEqual(answer["extra_logs"]["correct"][:2], [1.0, 0.0])
        self.assertTrue(math.isnan(answer["extra_logs"]["speedup"][2]))
        tensors = rewards.reward_func([PROMPT + GOOD, PROMPT + WRONG], [PROMPT] * 2, ["relu"] * 2)
        self.assertEqual(tensors["rewards"].tolist(), [1.0, 0.0])
        with self.assertRaises(nereid.NereidError):
            rewards.reward_func([GOOD], [""], [BROKEN])

    def test_verifiers(self):
        state, function = {}, rewards.verifiers(self.judge)
        completion = [{"role": "assistant", "content": GOOD}]
        self.assertEqual(
            asyncio.run(
                function(prompt=[], completion=completion, answer="relu", state=state, info={}, parser=None)
            ),
            1.0,
        )
        self.assertLessEqual(KEYS, set(state["nereid"]))
        with self.assertRaises(nereid.NereidError):
            asyncio.run(function(prompt=[], completion=completion, answer=BROKEN))

    def test_atropos(self):
        def encode(text):
            pieces = [(i, min(i + 4, len(text))) for i in range(0, len(text), 4)]
            return [len(text[a:b]) for a, b in pieces], pieces

        group = rewards.atropos_group(PROMPT, [GOOD, WRONG, NOTHING], encode, "relu")
        self.assertEqual(group["scores"], [1.0, 0.0, 0.0])
        before = len(encode(PROMPT)[0])
        for tokens, masks, advantages in zip(group["tokens"], group["masks"], group["advantages"]):
            self.assertEqual((len(tokens), len(tokens)), (len(masks), len(advantages)))
            self.assertEqual((masks[:before], advantages[:before]), ([-100] * before, [0.0] * before))
        self.assertAlmostEqual(max(group["advantages"][0]), 2 / 3)
        self.assertAlmostEqual(min(group["advantages"][1]), -1 / 3)
        self.assertEqual(rewards.atropos_group(PROMPT, [GOOD], encode, BROKEN)["scores"], [])

    def test_nemo_gym(self):
        body = {
            "responses_create_params": {"input": [{"role": "user", "content": PROMPT}]},
            "response": {"id": "r", "output": [{"type": "reasoning", "summary": []},
                                               {"type": "message", "role": "assistant",
                                                   "content": [{"type": "output_text", "text": GOOD}]}]},
            "verifier_metadata": {"reference": "relu"},
        }  # fmt: skip
        answer = asyncio.run(rewards.nemo_gym_verify(body))
        self.assertEqual(
            (answer["reward"], answer["reward_components"]["code"], answer["response"]["id"]), (1.0, 1.0, "r")
        )
        with self.assertRaises(nereid.NereidError):
            asyncio.run(rewards.nemo_gym_verify({**body, "verifier_metadata": {"reference": BROKEN}}))


class ServedAdapters(Adapters):
    """The same, where the judge is a server."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = judge_server.Server(os.environ["NEREID_PROGRAM"], cls.folder.name)
        cls.judge = rewards.configure(f"http://127.0.0.1:{cls.server.port}")

    @classmethod
    def tearDownClass(cls):
        cls.judge.close()
        code = cls.server.end()
        cls.folder.cleanup()
        assert code == 0, cls.server.stderr


if __name__ == "__main__":
    unittest.main()
