package event_test

import (
	"fmt"

	"github.com/musterhq/muster/internal/event"
	"github.com/musterhq/muster/internal/fault"
)

// A caller brings the cursor of its last event back and goes on after it. A cursor whose
// next events were deleted is refused, with the oldest from which the caller can go on.
func ExampleHead_Position() {
	head := event.Head{History: "history", First: 5, Last: 9}
	at, err := head.Position("acme", head.Cursor("acme", 7))
	fmt.Println(at, err)
	at, err = head.Position("acme", event.Latest)
	fmt.Println(at, err)
	_, err = head.Position("acme", head.Cursor("acme", 3))
	fmt.Println(fault.CodeOf(err))
	// Output:
	// 7 <nil>
	// 9 <nil>
	// cursor_expired
}
