package edge

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// Success returns the status of a call that succeeded.
func Success(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

var statuses = map[fault.Code]int{ //nolint:gochecknoglobals // a table that is never written to
	fault.InvalidArguments:     http.StatusBadRequest,
	fault.Unauthorized:         http.StatusUnauthorized,
	fault.Forbidden:            http.StatusForbidden,
	fault.NotFound:             http.StatusNotFound,
	fault.Unsupported:          http.StatusConflict,
	fault.NotPending:           http.StatusConflict,
	fault.StaleProposal:        http.StatusConflict,
	fault.InFlight:             http.StatusConflict,
	fault.Refused:              http.StatusUnprocessableEntity,
	fault.ConfirmationRequired: http.StatusUnprocessableEntity,
	fault.KeyReused:            http.StatusUnprocessableEntity,
	fault.CursorExpired:        http.StatusGone,
	fault.RateLimited:          http.StatusTooManyRequests,
	fault.Provider:             http.StatusBadGateway,
	fault.Unavailable:          http.StatusServiceUnavailable,
}

// Status is what a fault's code means over HTTP, on every surface (contract 7.1, 7.3, 7.4);
// of an unknown one, 500.
func Status(code fault.Code) int { return cmp.Or(statuses[code], http.StatusInternalServerError) }

// Statuses are those that a call of an operation, or of none (nil), is answered with: its
// successes and every fault.
func Statuses(o *operation.Operation) []int {
	all := append(slices.Collect(maps.Values(statuses)), http.StatusInternalServerError)
	switch {
	case o == nil:
		all = append(all, Success(false), http.StatusAccepted,
			http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType) // of MCP
	case o.Unconfirmed:
		all = append(all, Success(o.Created), http.StatusAccepted)
	case o.Effect == operation.Reading:
		all = append(all, Success(false), http.StatusNotModified)
	default:
		all = append(all, Success(o.Created))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
