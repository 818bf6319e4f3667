package validate

import (
	"regexp"
	"strings"
	"time"
)

// timeShape is that of RFC 3339 in capitals. time.Parse takes more, such as hours of one digit.
var timeShape = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// Time reads a time of RFC 3339, whose letters may be small (5.6). It knows no leap seconds.
func Time(s string) (at time.Time, ok bool) {
	s = strings.ToUpper(s)
	at, err := time.Parse(time.RFC3339, s)
	return at, err == nil && timeShape.MatchString(s)
}
