"""`python -m nereid._tinker`: requests as lines of JSON on stdin, answers as lines of JSON on stdout, one
request at a time, but for {"op": "cancel"} -> {"cancelled": true}, after which no more comes of the one
before. It ends when stdin does.

    {"op": "open", "base_model", "rank", "seed", "url", "state", "patience"}   -> {}
    {"op": "sample", "prompts": [{"tokens", "seed", "max_tokens"}], "samples", "temperature", "stop"}
        -> {"prompt": index, "sequences": [{"tokens", "logprobs"}]} for each prompt, then {}
    {"op": "forward", "data"}                     -> {"logprobs": [[...], ...]}
    {"op": "learn", "data", "adam"}               -> {"logprobs": [[...], ...]}
    {"op": "save", "name"}                        -> {"path"}

`data` is a list of {"tokens", "prompt", "logprobs", "advantages"}: `tokens` are prompt and answer, `prompt`
is the prompt's length, and the lists have a number for each token of the answer. The loss is minus the sum of
advantage times ratio of probabilities over all tokens. `logprobs` of an answer are those of the weights
before the step, in that shape.

A request that changes nothing (sample, forward, save) is repeated while the service is away, for `patience`
seconds. What went wrong is {"error": text, "blame": "input" or "service"}.
"""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request

LEAST_WAIT, MOST_WAIT = 1.0, 30.0  # seconds between two tries
SECONDS_BETWEEN_LOOKS = 2.0  # at a service that does not answer


class Refused(Exception):
    """The service says that the request is wrong."""


class Session:
    def __init__(self, tinker, request):
        self.tinker, self.patience = tinker, request["patience"]
        self.mean = request["reduction"] == "mean"
        url = request["url"] or None
        self.service = self.retried(lambda: tinker.ServiceClient(base_url=url))
        self.training = self.retried(lambda: self.open(request))
        self.sampler = None  # of the weights as they are

    def open(self, request):
        if request["state"]:
            return result(self.service.create_training_client_from_state_with_optimizer(request["state"]))
        return result(
            self.service.create_lora_training_client(
                base_model=request["base_model"], rank=request["rank"], seed=request["seed"]
            )
        )

    def retried(self, call):
        """`call()`, again and again while the service is away."""
        end, wait = time.monotonic() + self.patience, LEAST_WAIT
        while True:
            try:
                return call()
            except Exception as error:  # of many classes: of tinker, its HTTP client, and futures
                if refused(error):
                    raise Refused(message(error)) from error
                if time.monotonic() + wait > end:
                    raise
                print(
                    f"the service fails, tried again in {wait:g} s: {message(error)}",
                    file=sys.stderr,
                    flush=True,
                )
                time.sleep(wait)
                wait = min(2 * wait, MOST_WAIT)

    def sample(self, request, write):
        types = self.tinker.types
        if self.sampler is None:
            self.sampler = self.retried(lambda: result(self.training.save_weights_and_get_sampling_client()))

        def ask(prompt):
            return self.sampler.sample(
                prompt=types.ModelInput.from_ints(prompt["tokens"]),
                num_samples=request["samples"],
                sampling_params=types.SamplingParams(
                    max_tokens=prompt["max_tokens"],
                    seed=prompt["seed"],
                    temperature=request["temperature"],
                    stop=request["stop"],
                ),
            )

        def answer(prompt, first):
            """The first call was made with all the others', so that the service sees them together."""
            pending = [first]

            def call():
                future = pending.pop() if pending else ask(prompt)
                return future.result()

            return self.retried(call)

        futures = [self.retried(lambda prompt=prompt: ask(prompt)) for prompt in request["prompts"]]
        for index, (prompt, future) in enumerate(zip(request["prompts"], futures, strict=True)):
            sequences = answer(prompt, future).sequences
            if len(sequences) != request["samples"] or any(one.logprobs is None for one in sequences):
                raise RuntimeError(f"expected {request['samples']} samples with log-probabilities")
            write({"prompt": index, "sequences": [{"tokens": list(one.tokens), "logprobs": list(one.logprobs)}
                                                  for one in sequences]})  # fmt: skip
        return {}

    def data(self, request):
        """Token t + 1 is the target of token t. What is no answer's has an advantage of 0."""
        types, found = self.tinker.types, []
        for one in request["data"]:
            tokens, ahead = one["tokens"], one["prompt"] - 1
            # A service that takes means, of a sequence's tokens and then of sequences, gets what makes it a
            # sum.
            scale = len(request["data"]) * (len(tokens) - 1) if self.mean else 1
            inputs = {
                "target_tokens": tokens[1:],
                "logprobs": [0.0] * ahead + one["logprobs"],
                "advantages": [0.0] * ahead + [scale * advantage for advantage in one["advantages"]],
            }
            found.append(
                types.Datum(model_input=types.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=inputs)
            )
        return found

    def logprobs(self, request, output):
        found = []
        for one, outputs in zip(request["data"], output.loss_fn_outputs, strict=True):
            found.append([float(x) for x in outputs["logprobs"].tolist()][one["prompt"] - 1 :])
        return {"logprobs": found}

    def forward(self, request, write):
        data = self.data(request)
        return self.logprobs(
            request, self.retried(lambda: result(self.training.forward(data, "importance_sampling")))
        )

    def learn(self, request, write):
        self.sampler = None
        try:
            gradient = self.training.forward_backward(self.data(request), "importance_sampling")
            step = self.training.optim_step(self.tinker.types.AdamParams(**request["adam"]))
            output = gradient.result()
            step.result()
        except Exception as error:
            if refused(error):
                raise Refused(message(error)) from error
            raise
        return self.logprobs(request, output)

    def save(self, request, write):
        return {"path": self.retried(lambda: result(self.training.save_state(request["name"]))).path}


def result(found):
    """Of what is a future in some versions of the package, and what it stands for in others."""
    return found.result() if hasattr(found, "result") else found


def refused(error):
    """Whether the same request would be refused again."""
    status = getattr(error, "status_code", None)
    return isinstance(status, int) and 400 <= status < 500 and status not in (408, 409, 425, 429)


def message(error):
    return f"{type(error).__name__}: {error}"[:1000]


class Requests:
    """One at a time, each on a thread of its own, so that it can be left: what comes of it then is not
    written."""

    def __init__(self, out):
        self.out, self.lock = out, threading.Lock()
        self.number, self.busy, self.session = 0, False, None
        self.url, self.patience = None, 0
        threading.Thread(target=self.watch, daemon=True).start()

    def write(self, number, answer, last=True):
        with self.lock:
            left = memoryview(json.dumps(answer).encode() + b"\n" if number == self.number else b"")
            while left:
                left = left[os.write(self.out, left) :]
            if last and number == self.number:
                self.busy = False

    def begin(self, request):
        with self.lock:
            self.number += 1
            self.busy = request["op"] != "cancel"
        if request["op"] == "cancel":
            return self.write(self.number, {"cancelled": True})
        if request["op"] == "open":
            self.url = request["url"] or os.environ.get("TINKER_BASE_URL")
            self.patience = request["patience"]
        threading.Thread(target=self.run, args=(self.number, request), daemon=True).start()

    def run(self, number, request):
        try:
            if request["op"] == "open":
                import tinker

                self.session = Session(tinker, request)
                answer = {}
            else:
                answer = getattr(self.session, request["op"])(
                    request, lambda part: self.write(number, part, last=False)
                )
        except ImportError as error:
            answer = {"error": f"{sys.executable} has no package `tinker` ({error})", "blame": "input"}
        except Refused as error:
            answer = {"error": str(error), "blame": "input"}
        except Exception as error:  # the program says what it means for the run
            answer = {"error": message(error), "blame": "service"}
        self.write(number, answer)

    def watch(self):
        """The package waits for ever for a service that is away: not longer than our patience."""
        since = None
        while True:
            time.sleep(SECONDS_BETWEEN_LOOKS)
            number = self.number
            if not self.busy or not self.url or reachable(self.url):
                since = None
                continue
            since = since or time.monotonic()
            if time.monotonic() - since >= self.patience:
                self.write(number, {"error": f"no connection for {self.patience:g} s", "blame": "service"})
                with self.lock:
                    self.number += number == self.number


def reachable(url):
    """Whether something speaks HTTP there, whatever it says."""
    try:
        urllib.request.urlopen(url.rstrip("/") + "/api/v1/healthz", timeout=10).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def main():
    requests = Requests(os.dup(1))
    os.dup2(2, 1)  # whatever the package prints is no answer
    for line in sys.stdin.buffer:
        requests.begin(json.loads(line))
    os._exit(0)  # whatever threads the package has


if __name__ == "__main__":
    main()
