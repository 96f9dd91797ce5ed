# What stands around the commands of a page: the same commands, on a port and in a directory of their own, on a small
# job. ID and JOB stand for the newest job, TRANSITION and CHECKPOINT for one of its, EPISODE for one that was imported.
set -eEuo pipefail
at=start service=
trap 'echo "$at: \`$BASH_COMMAND\` failed" >&2' ERR
trap 'stop_service' EXIT

stop_service() {
  [ -n "$service" ] || return 0
  kill "$service" 2>/dev/null || true
  wait "$service" || true
  service=
}
serve() {
  stop_service
  "$NLAC_BIN" serve --listen "127.0.0.1:$PORT" --data-dir "$DATA" --threads 1 "$@" >> "$LOG" 2>&1 &
  service=$!
  for _ in $(seq 600); do
    command curl -sf "$NLAC_SERVER/readyz" > /dev/null && return
    sleep 0.1
  done
  echo "the service does not start: $(tail -n 5 "$LOG")" >&2
  return 1
}
until_open() {
  for _ in $(seq 300); do
    (: < "/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
    sleep 0.1
  done
  return 1
}
# The id of the first row at a path.
first_id() {
  command curl -sf "$NLAC_SERVER$1" | tr ',{' '\n\n' | sed -nE 's/^"id":"([0-9a-f-]{36})".*/\1/p' | sed -n 1p
}
# The id of a job's newest checkpoint that somebody acts by.
acting() {
  command curl -sf "$NLAC_SERVER/v1/jobs/$1/checkpoints" | tr '{' '\n' | grep '"role":"online"' |
    sed -nE 's/^"id":"([0-9a-f-]{36})".*/\1/p' | sed -n 1p
}
# The arguments with the placeholders filled in, as `words`.
filled() {
  local word job=
  words=()
  for word; do
    if [[ $word =~ (^|[^A-Za-z_])(ID|JOB|TRANSITION|CHECKPOINT|EPISODE)($|[^A-Za-z_]) ]]; then
      job=${job:-$(first_id '/v1/jobs?limit=1')}
      [[ $word != *TRANSITION* ]] ||
        word=${word//TRANSITION/$(first_id "/v1/jobs/$job/transitions?changed=true&limit=1")}
      [[ $word != *EPISODE* ]] || word=${word//EPISODE/$(first_id '/v1/datasets/desk-logs/episodes?limit=1')}
      [[ $word != *CHECKPOINT* ]] || word=${word//CHECKPOINT/$(acting "$job")}
      word=$(sed -E "s/\b(ID|JOB)\b/$job/g" <<< "$word")
    fi
    words+=("$word")
  done
}
nlac() {
  case $1 in
    serve) shift; serve "$@" ;;
    # Once is enough: it measures on hundreds of episodes, however few its iterations are.
    demo) shift; [ "$DEMO" = no ] || "$NLAC_BIN" demo --iterations 1 --listen 127.0.0.1:0 --data-dir "$DATA-demo" "$@" ;;
    *) filled "$@"; "$NLAC_BIN" "${words[@]}" ;;
  esac
}
cargo() {
  [ "$1 $2 $3" = "run --release --" ]
  nlac "${@:4}"
}
curl() { filled "$@"; command curl -f "${words[@]}"; }
psql() { filled "$@"; command psql --set ON_ERROR_STOP=1 "${words[@]}"; }
python() {
  if [ $# = 0 ]; then filled -c "$(cat)"; else filled "$@"; fi
  if [ -z "$PYTHON" ]; then
    echo "skipped: no Python client" >&2
  elif [ "$*" != "${*#-m nlac.track}" ] && ! "$PYTHON" -c 'import mlflow, tensorboard, wandb' 2> /dev/null; then
    echo "skipped: no trackers" >&2
  else
    "$PYTHON" "${words[@]}"
  fi
}
# What a page installs is there already: the client's own tests install it.
pip() { [ "$1" = install ]; }
systemctl() {
  case $1 in
    stop) stop_service ;;
    start) serve ;;
    *) return 1 ;;
  esac
}
