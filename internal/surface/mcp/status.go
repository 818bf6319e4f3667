package mcp

import (
	"net/http"

	"github.com/musterhq/muster/internal/fault"
)

// status is the HTTP status that REST answers for the same fault.
func status(f *fault.Error) int {
	switch f.Code {
	case fault.InvalidArguments:
		return http.StatusBadRequest
	case fault.Unauthorized:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Unsupported, fault.NotPending, fault.StaleProposal, fault.InFlight:
		return http.StatusConflict
	case fault.Refused, fault.ConfirmationRequired, fault.KeyReused:
		return http.StatusUnprocessableEntity
	case fault.RateLimited:
		return http.StatusTooManyRequests
	case fault.Provider:
		return http.StatusBadGateway
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}
