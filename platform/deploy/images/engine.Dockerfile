# A vLLM server: vLLM's own image of the release that pyproject.toml names, by digest.
#
#   docker build -f platform/deploy/images/engine.Dockerfile --build-arg VLLM_DIGEST=sha256:... .
ARG VLLM=vllm/vllm-openai
# There is no default: choose the version deliberately, because another version gives other completions.
ARG VLLM_DIGEST

FROM ${VLLM}@${VLLM_DIGEST}
RUN groupadd --gid 10001 caret && useradd --uid 10001 --gid 10001 --no-create-home caret
# Weights come from a volume, and caches are in /tmp. The engine downloads nothing and sends no statistics.
ENV HOME=/tmp \
    HF_HUB_OFFLINE=1 \
    VLLM_NO_USAGE_STATS=1 \
    DO_NOT_TRACK=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
# Start the process without a shell, so that SIGTERM reaches it.
ENTRYPOINT ["python3", "-m", "vllm.entrypoints.openai.api_server"]
