// Package ops is what operators run the service with: the doctor, probes, metrics, the
// log's format, the key file, the TLS certificate, and the shares of open files. Package
// service puts it together with the rest.
package ops
