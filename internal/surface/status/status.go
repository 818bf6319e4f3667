// Package status says what a fault's code means: its HTTP status, and whether
// the call may be repeated. It is the same on every surface (contract 7.1, 7.3, 7.4).
package status

import (
	"net/http"

	"github.com/musterhq/muster/internal/fault"
)

// Success returns the status of a call that succeeded.
func Success(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// Of returns the status of a code; of an unknown one, 500.
func Of(code fault.Code) int {
	switch code {
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
	}
	return http.StatusInternalServerError
}
