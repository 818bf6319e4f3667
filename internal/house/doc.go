// Package house checks the rules of the house: who may import whom, what only
// certain rooms may touch, and how big things may grow.
//
// It reads the sources alone, without compiling them, so it is quick and works
// on a tree that does not build. Tests are free of every rule but the ones on
// SQL, the vendor's types and package names: they may reach for whatever proves
// the point.
//
// The rules are run by a command and not by a test, because the test cache
// does not see the other packages' sources and would answer "ok (cached)" after
// a rule was broken.
package house
