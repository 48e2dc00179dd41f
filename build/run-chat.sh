#!/usr/bin/env bash
# Serves the sample chat with a key for its notify endpoint.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${CHAT_NOTIFY_KEY:-}" ]; then
	CHAT_NOTIFY_KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	export CHAT_NOTIFY_KEY
fi
cat <<EOF

  The chat:      http://localhost:8080/
  Push to alice: curl -H "X-Api-Key: $CHAT_NOTIFY_KEY" -d to=alice -d text="Dinner is ready" http://localhost:8080/notify.php
  Stop:          Ctrl-C

EOF
exec bin/ephpm serve -c examples/chat/ephpm.toml
