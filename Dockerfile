# nlac with a Postgres of its own. Keep the toolchain in step with rust-version in Cargo.toml.
ARG RUST=1.95
FROM rust:${RUST}-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends postgresql-15 curl \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --create-home --home-dir /var/lib/nlac nlac
COPY --from=build /src/target/release/nlac /usr/local/bin/nlac
USER nlac
VOLUME /var/lib/nlac
ENV NLAC_DATA_DIR=/var/lib/nlac/data NLAC_LISTEN=0.0.0.0:8470
EXPOSE 8470
HEALTHCHECK --interval=10s --timeout=3s CMD curl -sf http://127.0.0.1:8470/readyz || exit 1
CMD ["nlac", "serve"]
