# nlac, small and without root. `docker build -t nlac .` makes the image for a Postgres of yours (DATABASE_URL);
# `--target all-in-one` adds a private Postgres. Keep RUST in step with rust-version in Cargo.toml. Where there is
# no Docker engine, scripts/check-image runs these very steps. The tags name exact versions; to hold a build to the
# bytes as well, give them with a digest: `--build-arg DEBIAN=12.12-slim@sha256:…`, as
# `docker buildx imagetools inspect debian:12.12-slim` tells it.
ARG RUST=1.95.0-slim-bookworm
ARG DEBIAN=12.12-slim

FROM rust:${RUST} AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin nlac

FROM debian:${DEBIAN} AS base
# Engines and trainers behind TLS need the certificates, the health check needs curl.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /var/lib/nlac nlac \
 && install -d -o nlac /var/lib/nlac
COPY --from=build /src/target/release/nlac /usr/local/bin/nlac
ENV NLAC_DATA_DIR=/var/lib/nlac NLAC_LISTEN=0.0.0.0:8470
USER 10001
VOLUME /var/lib/nlac
EXPOSE 8470
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD curl -sf http://127.0.0.1:8470/readyz || exit 1
CMD ["nlac", "serve"]

FROM base AS all-in-one
USER root
# The package's own cluster is of no use here.
RUN apt-get update \
 && apt-get install -y --no-install-recommends postgresql-15 \
 && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/15 /etc/postgresql/15
USER 10001

FROM base AS nlac
