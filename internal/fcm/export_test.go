package fcm

import "google.golang.org/api/googleapi"

// Judge is what an answer comes to, for tests.
func Judge(status int, body string) string {
	return string(judge(&googleapi.Error{Code: status, Body: body}).code)
}
