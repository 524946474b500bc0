# syntax=docker/dockerfile:1
# Server image: one static binary, no shell, user 65532. See docs/deploy.md.
#   docker build --build-arg COMMIT="$(git rev-parse --short=12 HEAD)" --tag baton .
#   docker run --publish 127.0.0.1:7333:7333 --volume baton:/data baton
FROM rust:1.95-alpine AS build
# hadolint ignore=DL3018
RUN apk add --no-cache build-base linux-headers
WORKDIR /src
COPY . .
ARG COMMIT=unknown
ENV BATON_COMMIT=$COMMIT
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --profile dist --bin baton \
    && install -D target/dist/baton /image/usr/local/bin/baton \
    && install -d -o 65532 -g 65532 -m 0700 /image/data \
    && install -d -m 1777 /image/tmp

FROM scratch
COPY --from=build /image /
# A number, so that orchestrators can see that it is not root.
USER 65532:65532
ENV BATON_DATA_DIR=/data BATON_LISTEN=0.0.0.0:7333
VOLUME /data
EXPOSE 7333
ENTRYPOINT ["/usr/local/bin/baton"]
CMD ["serve"]
