# mcpzip as an image: docs/packaging.md says how to build and run it.
#
#     docker build -t mcpzip .                                          the proxy
#     docker build -t mcpzip-conformance --target conformance .         the runner, with the fakes

# The digest is that of an image for all platforms. A newer one: docker buildx imagetools inspect python:3.13-slim-trixie
FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS base
ENV PATH=/opt/mcpzip/bin:$PATH PYTHONDONTWRITEBYTECODE=1


FROM base AS build
# Extras of pyproject.toml, as "code,tokens".
ARG EXTRAS=""
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY mcpzip mcpzip
COPY fakes fakes
COPY conformance conformance
RUN python -m venv /opt/mcpzip \
 && pip install --no-cache-dir --disable-pip-version-check --compile ".${EXTRAS:+[$EXTRAS]}"


FROM build AS build-conformance
RUN pip install --no-cache-dir --disable-pip-version-check --compile ".[conformance]"


FROM base AS runtime
# Process 1 must wait for the processes whose parent has ended, which servers leave behind; tini does.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/*
# Files that mcpzip and its servers write go to /data: the cache, pins, sign-ins and logs beside the config, and HOME.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin mcpzip \
 && install -d -o mcpzip -g mcpzip -m 700 /data
ENV HOME=/data
WORKDIR /data
VOLUME /data
USER 10001:10001


FROM runtime AS conformance
COPY --from=build-conformance /opt/mcpzip /opt/mcpzip
ENV MCPZIP_CONFORMANCE_CACHE=/data/conformance
LABEL org.opencontainers.image.title="mcpzip-conformance" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT"
ENTRYPOINT ["tini", "-s", "--", "mcpzip-conformance"]
CMD ["--help"]


FROM runtime AS mcpzip
COPY --from=build /opt/mcpzip /opt/mcpzip
# One process serves one container: without the daemon, which would outlive its client.
ENV MCPZIP_CONFIG=/data/config.json MCPZIP_DAEMON=off
LABEL io.modelcontextprotocol.server.name="com.example/mcpzip" \
      org.opencontainers.image.title="mcpzip" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="MIT"
EXPOSE 8931
ENTRYPOINT ["tini", "-s", "--", "mcpzip"]
CMD ["serve"]
