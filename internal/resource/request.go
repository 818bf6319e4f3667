package resource

// maxRequestID bounds the ids that callers may bring, in characters.
const maxRequestID = 64

// RequestID is the caller's own id for a request, if it is fit for a log and a
// header (1 to 64 letters, digits and any of - _ . :), else a new one.
func RequestID(given string) string {
	if given == "" || len(given) > maxRequestID {
		return NewID()
	}
	for _, c := range []byte(given) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == ':':
		default:
			return NewID()
		}
	}
	return given
}
