# The same as cpu.Dockerfile plus vLLM, for a judge on GPUs (vLLM's wheels bring the CUDA libraries that they need).
#   docker build -f deploy/cuda.Dockerfile -t adjudge:cuda . && docker run --rm --gpus all --ipc=host -v "$PWD:/work" adjudge:cuda doctor
# Change: the tag of the base image, in both stages; pin it by digest in your own registry.
FROM python:3.12.12-slim-bookworm AS build
COPY . /source
RUN /source/deploy/install.sh /opt/adjudge requirements-cuda.lock

FROM python:3.12.12-slim-bookworm
# Triton compiles kernels when an engine starts, which needs a C compiler.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --no-create-home --home-dir /work adjudge && install -d -o adjudge /work
COPY --from=build /opt/adjudge /opt/adjudge
ENV PATH=/opt/adjudge/bin:$PATH NUMBA_CACHE_DIR=/tmp/numba PYTHONUNBUFFERED=1 RAY_USAGE_STATS_ENABLED=0 \
    HF_HOME=/work/.cache/huggingface VLLM_CACHE_ROOT=/work/.cache/vllm VLLM_NO_USAGE_STATS=1 \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /work
USER 10001
EXPOSE 8300 9400
ENTRYPOINT ["adjudge"]
CMD ["doctor"]
