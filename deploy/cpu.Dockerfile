# Everything except a judge on a GPU: evaluations with a judge behind a URL, the reward server, leaderboards, the driver.
#   docker build -f deploy/cpu.Dockerfile -t adjudge:cpu . && docker run --rm -v "$PWD:/work" adjudge:cpu evaluate adjudge.yaml
# Change: the tag of the base image, in both stages; pin it by digest in your own registry.
FROM python:3.12.12-slim-bookworm AS build
COPY . /source
RUN /source/deploy/install.sh /opt/adjudge requirements.lock

FROM python:3.12.12-slim-bookworm
RUN useradd --uid 10001 --no-create-home --home-dir /work adjudge && install -d -o adjudge /work
COPY --from=build /opt/adjudge /opt/adjudge
ENV PATH=/opt/adjudge/bin:$PATH NUMBA_CACHE_DIR=/tmp/numba PYTHONUNBUFFERED=1 RAY_USAGE_STATS_ENABLED=0
WORKDIR /work
USER 10001
EXPOSE 8300 9400
ENTRYPOINT ["adjudge"]
CMD ["doctor"]
