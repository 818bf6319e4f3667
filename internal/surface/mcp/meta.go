package mcp

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/musterhq/muster/internal/operation"
)

// What a client may say of a call beside its arguments, in the members of _meta. Each
// means what a header of REST does.
const (
	metaKey = "muster/idempotencyKey"
	// metaReplayed is of answers: the call ran before, and this is its answer of then.
	metaReplayed = "muster/idempotencyReplayed"
)

// readMeta returns the idempotency key of a call, and the rest of what is said of it.
func readMeta(given sdk.Meta) (key string, meta operation.Meta) {
	if value, ok := given[metaKey]; ok {
		key, _ = value.(string) // of another type: it is empty, which is refused
		meta.Wrong = operation.CheckKey(metaKey, key)
	}
	return key, meta
}
