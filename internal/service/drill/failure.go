package drill

import "fmt"

// failure is what a step panics with that cannot go on. A scenario is a long script, each step of which would only pass an
// error on: so attempt, where the scenario starts, takes it up.
type failure struct{ error }

// need ends the scenario unless err is nil.
func need(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// fail ends the scenario.
func fail(format string, args ...any) { need(fmt.Errorf(format, args...)) }

// must returns the value, or ends the scenario.
func must[T any](value T, err error) T {
	need(err)
	return value
}

// attempt runs a script and returns the error that ended it early, or nil.
func attempt(script func()) (err error) {
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

// within runs a part of a script, whose error begins with its name.
func within(name string, part func()) {
	if err := attempt(part); err != nil {
		fail("%s: %w", name, err)
	}
}
