package provisioning

// AppState says what a code of an own-agent policy has a device install.
type AppState int

// The states of the app.
const (
	// AppServed: the app, from an address that the setup wizard can reach.
	AppServed AppState = iota
	// AppMissing: nothing, the service has no app.
	AppMissing
	// AppUnreachable: nothing, the setup wizard would not trust the service's
	// certificate.
	AppUnreachable
)
