package poll_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/test/poll"
)

func TestFor_WaitsForSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, looks := time.Now(), 0
		err := poll.For(time.Minute, func() error {
			if looks++; time.Since(begin) < 10*time.Second {
				return errors.New("not yet")
			}
			return nil
		})
		if err != nil || looks > 120 { // 100 in ten seconds, and some more at first
			t.Errorf("%v after %d looks", err, looks)
		}
	})
}

func TestFor_ReturnsTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := poll.For(time.Minute, func() error { return errors.New("never") })
		if err == nil || time.Since(begin) < time.Minute || time.Since(begin) > 61*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}
