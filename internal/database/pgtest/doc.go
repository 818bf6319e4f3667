// Package pgtest gives each test a PostgreSQL database of its own.
//
// The server is the one that MUSTER_TEST_POSTGRES names (`make test` starts one
// and sets it). Without the variable, and with PostgreSQL's programs on the
// machine, each test process starts a private server that ends with it, so that
// a plain `go test` works too. With neither, the test is skipped, and fails
// where CI=true: a run that counts must not pass by leaving half of itself out.
package pgtest
