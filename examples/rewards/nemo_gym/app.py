"""A resources server of NeMo-Gym, rewarded by Nereid.

    ng_run "+config_paths=[resources_servers/nereid/configs/nereid.yaml,...]"

This file is resources_servers/nereid/app.py. A row's `verifier_metadata.reference` is its reference. Without
NeMo-Gym's own server: `nereid serve` has the routes /seed_session, /verify and /aggregate_metrics itself.
"""

from nemo_gym.base_resources_server import (
    BaseMultiRewardVerifyResponse,
    BaseVerifyRequest,
    SimpleResourcesServer,
)
from nereid import rewards
from pydantic import ConfigDict


class NereidVerifyRequest(BaseVerifyRequest):
    model_config = ConfigDict(extra="allow")
    verifier_metadata: dict


class NereidVerifyResponse(BaseMultiRewardVerifyResponse):
    model_config = ConfigDict(extra="allow")


class NereidResourcesServer(SimpleResourcesServer):
    async def verify(self, body: NereidVerifyRequest) -> NereidVerifyResponse:
        # A fault of the judge raises NereidError: no reward, and the sample is not counted.
        return NereidVerifyResponse(**await rewards.nemo_gym_verify(body.model_dump()))


if __name__ == "__main__":
    NereidResourcesServer.run_webserver()
