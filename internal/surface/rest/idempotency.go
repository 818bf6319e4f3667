package rest

import (
	"net/http"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// idempotencyKey returns the request's Idempotency-Key, which every POST may have, and
// what is wrong with it. A key of any other method is ignored.
func idempotencyKey(r *http.Request) (string, *fault.Error) {
	const header = "Idempotency-Key"
	values := r.Header[header]
	switch {
	case r.Method != http.MethodPost || len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", operation.InvalidKey(header)
	}
	return values[0], operation.CheckKey(header, values[0])
}
