package oauth

import "net/http"

// protocolFault is an error of RFC 6749 and its relatives.
type protocolFault struct {
	Code        string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// The codes that are used.
const (
	invalidRequest       = "invalid_request"
	invalidClient        = "invalid_client"
	invalidGrant         = "invalid_grant"
	invalidScope         = "invalid_scope"
	invalidTarget        = "invalid_target"
	invalidRedirect      = "invalid_redirect_uri"
	invalidMetadata      = "invalid_client_metadata"
	unsupportedGrant     = "unsupported_grant_type"
	unsupportedResponse  = "unsupported_response_type"
	accessDenied         = "access_denied"
	serverError          = "server_error"
	temporaryUnavailable = "temporarily_unavailable"
)

func (f *protocolFault) Error() string { return f.Code + ": " + f.Description }

// limitFault is a refusal for the rate of requests.
type limitFault struct {
	protocolFault
	Seconds int // to wait
}

// status is the HTTP status of the fault where it is answered as JSON.
func (f *protocolFault) status() int {
	switch f.Code {
	case invalidClient:
		return http.StatusUnauthorized
	case serverError:
		return http.StatusInternalServerError
	case temporaryUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}
