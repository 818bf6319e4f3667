package emulator

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// frontEnd does what the vendor's front end does before a method is called: it
// takes another method from the header or the system parameter, unpacks
// compressed bodies, and maps the system parameters that every interface has
// (https://cloud.google.com/apis/docs/system-parameters) to their short names.
func (e *Emulator) frontEnd(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		for _, step := range []func(*http.Request) error{unpack, e.overrideMethod, systemParameters} {
			if err := step(r); err != nil {
				e.answerError(w, r, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// unpack replaces a body that is compressed with gzip, which Google's Java
// client sends unless it is told otherwise.
func unpack(r *http.Request) error {
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
	default:
		return fail(http.StatusUnsupportedMediaType, "Unsupported content encoding: the emulator takes gzip.")
	}
	packed, err := gzip.NewReader(r.Body)
	if err != nil {
		return invalid("The request body could not be read: %v.", err)
	}
	plain, err := readBody(packed)
	if err != nil {
		return err
	}
	setBody(r, plain)
	r.Header.Del("Content-Encoding")
	return nil
}

// readBody reads a body that is no longer than is allowed.
func readBody(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, maxBody+1))
	if err != nil {
		return nil, invalid("The request body could not be read: %v.", err)
	}
	if len(body) > maxBody {
		return nil, fail(http.StatusRequestEntityTooLarge, "Request payload size exceeds the limit: %d bytes.", int64(maxBody))
	}
	return body, nil
}

func setBody(r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// overrideMethod lets a POST stand for another method. A GET whose address would
// be too long has its query as a form in the body, as Google's Python client
// sends it.
func (e *Emulator) overrideMethod(r *http.Request) error {
	method := strings.ToUpper(cmp.Or(r.Header.Get("X-HTTP-Method-Override"), r.URL.Query().Get("$httpMethod")))
	if r.Method != http.MethodPost || method == "" || method == http.MethodPost {
		return nil
	}
	if !slices.Contains([]string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete}, method) {
		return invalid("Invalid method override: %q is not one of GET, PUT, PATCH and DELETE.", method)
	}
	r.Method = method
	if method != http.MethodGet || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return nil
	}
	form, err := readBody(r.Body)
	if err != nil {
		return err
	}
	r.URL.RawQuery = strings.Trim(r.URL.RawQuery+"&"+string(form), "&")
	setBody(r, nil)
	return nil
}

// shortNames are the system parameters with a short name, which the discovery
// documents list.
var shortNames = map[string]string{ //nolint:gochecknoglobals // a table that is never written to
	"$alt": "alt", "$callback": "callback", "$fields": "fields", "$key": "key", "$prettyPrint": "prettyPrint",
	"$quotaUser": "quotaUser", "$apiFormat": "$.xgafv",
}

// systemParameters gives the system parameters their short names. Answers have
// the names of enum values whatever enum-encoding asks for: a parser of proto3's
// JSON takes both.
func systemParameters(r *http.Request) error {
	query, err := url.ParseQuery(strings.ReplaceAll(r.URL.RawQuery, ";", "%3B"))
	if err != nil {
		return invalid("Invalid query.")
	}
	for long, short := range shortNames {
		if values, ok := query[long]; ok {
			query[short] = append(query[short], values...)
			delete(query, long)
		}
	}
	for _, name := range []string{"$ct", "$httpMethod", "$outputDefaults", "$unique", "$userProject"} { // they change nothing here
		delete(query, name)
	}
	if mask := r.Header.Get("X-Goog-FieldMask"); mask != "" && !query.Has("fields") {
		query.Set("fields", mask)
	}
	for i, format := range query["alt"] {
		format, parameters, _ := strings.Cut(format, ";")
		switch {
		case format == "media" || format == "proto" || format == "sse":
			return fail(http.StatusNotImplemented, "The emulator answers JSON only, not %s.", format)
		case parameters == "" || parameters == "enum-encoding=int" || parameters == "enum-encoding=string":
			query["alt"][i] = format
		}
	}
	r.URL.RawQuery = query.Encode()
	return nil
}

// refuseBrowsers refuses calls of the control API that a web page could have a
// browser make: from another origin, under a name that an attacker may point at
// this machine (DNS rebinding), or in a form that browsers send without asking.
// Programs send none of these; curl's form media type stays good as long as no
// browser says that a page sent it.
func (e *Emulator) refuseBrowsers(r *http.Request) error {
	if !e.knownHost(r.Host) {
		return fail(http.StatusForbidden, "The control API is not served under the host name %q: call it by an IP address, localhost, a "+
			"name without a dot, or the emulator's public address.", r.Host)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return fail(http.StatusForbidden, "The control API does not take calls from pages of other origins.")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		// A search domain may complete a name without a dot, so that a page could stand there.
		if from, err := url.Parse(origin); err != nil || from.Host != r.Host || bare(r.Host) {
			return fail(http.StatusForbidden, "The control API does not take calls from pages of other origins.")
		}
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media == "text/plain" || media == "multipart/form-data" {
		return fail(http.StatusUnsupportedMediaType, "The control API takes application/json, not %s.", media)
	}
	return nil
}

// knownHost reports whether the host name cannot be pointed at this machine by others:
// addresses, names of the machine itself and of its own network, and the
// emulator's public address.
func (e *Emulator) knownHost(host string) bool {
	if public, err := url.Parse(e.options.PublicURL); err == nil && public.Host != "" && strings.EqualFold(public.Host, host) {
		return true
	}
	host = withoutPort(host)
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	// No name below these can be registered (RFC 6761, ICANN's reservation of internal).
	host = strings.ToLower(host)
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".internal") ||
		strings.HasSuffix(host, ".test")
}

// bare reports whether a host is a name without a dot other than localhost, such as
// a container's.
func bare(host string) bool {
	host = withoutPort(host)
	return !strings.ContainsAny(host, ".:") && !strings.EqualFold(host, "localhost")
}

func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
