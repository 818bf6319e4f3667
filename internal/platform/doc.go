// Package platform is the adapter to the vendor's device-management platform,
// the Android Management API, on the vendor's own REST clients.
//
// It implements the domain's command.Channel and provisioning.Issuer, keeps the
// platform's copies of policies up to date, binds companies to enterprises, and
// brings what the platform reports about devices and commands into the domain.
//
// # One attempt and its result
//
// Every call of the vendor goes through Platform.call: it spends the shared
// quota, obtains a token, and only then makes one attempt, watching whether
// anything was written and whether an answer began. A failure carries its
// result (see outcome.Code): nothing was sent, unknown, or the vendor answered.
// Nothing is repeated behind the caller's back: the vendor's client does not
// retry, the transport follows no redirects and speaks HTTP/1.1, where Go
// repeats a request only if no byte of it was written.
//
// # What it needs
//
// The interfaces of store.go, which the database implements. All times come
// from Config.Now and from timers, so that everything runs in testing/synctest.
package platform
