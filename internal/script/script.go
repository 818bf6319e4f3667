// Package script ends a long script at its first failure, without an error that each step passes on. A script is a program
// that plays what people and devices do, step by step: the demo's company, an attack. Code that serves requests returns errors.
package script

import "fmt"

// failure is what a step panics with that cannot go on.
type failure struct{ error }

// Need ends the script unless err is nil.
func Need(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Fail ends the script.
func Fail(format string, args ...any) { Need(fmt.Errorf(format, args...)) }

// Must returns the value, or ends the script.
func Must[T any](value T, err error) T {
	Need(err)
	return value
}

// Attempt runs a script and returns the error that ended it early, or nil. A script ends in the goroutine that it began in:
// another one that it starts needs an Attempt of its own.
func Attempt(script func()) (err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case failure:
			err = cause.error
		default:
			panic(cause)
		}
	}()
	script()
	return nil
}

// Within runs a part of a script, whose error begins with its name.
func Within(name string, part func()) {
	if err := Attempt(part); err != nil {
		Fail("%s: %w", name, err)
	}
}
