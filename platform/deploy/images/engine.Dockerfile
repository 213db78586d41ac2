# One vLLM server, by the digest of vLLM's own image of the release that pyproject.toml names.
#
#   docker build -f platform/deploy/images/engine.Dockerfile --build-arg VLLM_DIGEST=sha256:... .
ARG VLLM=vllm/vllm-openai
# No default: an engine that is another one tomorrow has other completions, and another cache.
ARG VLLM_DIGEST

FROM ${VLLM}@${VLLM_DIGEST}
RUN groupadd --gid 10001 caret && useradd --uid 10001 --gid 10001 --no-create-home caret
# Weights come by a volume, caches go to /tmp; nothing is fetched from or told to anybody.
ENV HOME=/tmp \
    HF_HUB_OFFLINE=1 \
    VLLM_NO_USAGE_STATS=1 \
    DO_NOT_TRACK=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
# The process itself, not a shell before it: SIGTERM must reach it.
ENTRYPOINT ["python3", "-m", "vllm.entrypoints.openai.api_server"]
