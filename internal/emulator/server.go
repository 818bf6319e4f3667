package emulator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/discovery"
)

// maxBody is how long a request may be.
const maxBody = 10 << 20

func (e *Emulator) newHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/", e.frontEnd(http.HandlerFunc(e.serveVendor)))
	mux.HandleFunc("POST /token", e.serveToken)
	mux.HandleFunc("GET /signup/{id}", e.serveSignupPage)
	mux.HandleFunc("POST /signup/{id}", e.serveSignupForm)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /{$}", serveFrontPage)
	e.addControl(mux)
	return mux
}

func serveFrontPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "This is Muster's emulator of the Android Management API.\n\n"+
		"Vendor API, Pub/Sub, FCM   /v1/…\nOAuth tokens               /token\nControl                    /emulator/v1/…\n")
}

// serveVendor answers a call of one of the vendor's interfaces.
func (e *Emulator) serveVendor(w http.ResponseWriter, r *http.Request) {
	for _, route := range e.routes {
		if method, parameters, ok := route.document.Match(r.Method, r.URL.Path); ok {
			e.serveMethod(w, r, route, method, parameters)
			return
		}
	}
	e.logger.Warn("call of something that the emulator does not have", "method", r.Method, "path", r.URL.Path)
	e.answerError(w, r, fail(http.StatusNotImplemented, "The emulator does not have %s %s.", r.Method, r.URL.Path))
}

func (e *Emulator) serveMethod(w http.ResponseWriter, r *http.Request, route route, method *discovery.Method,
	parameters map[string]string) {
	raw, err := readBody(r.Body)
	if err != nil {
		e.answerError(w, r, err)
		return
	}
	names := methodNames(method.ID)
	if route.isManagement {
		seq := e.calls.add(Call{Method: names[0], Path: r.URL.Path, Query: redactQuery(r.URL.Query()), Body: redactBody(raw), At: e.now()})
		recorder := &statusRecorder{ResponseWriter: w}
		defer func() { e.calls.finish(seq, recorder.code) }()
		w = recorder
	}
	e.serve(w, r, names, func() (any, error) { return e.perform(r, route, method, parameters, raw) })
}

// serve answers with what a method does, or with the fault that the call meets.
func (e *Emulator) serve(w http.ResponseWriter, r *http.Request, names []string, perform func() (any, error)) {
	if fault := e.faults.take(names, r.URL.Path); fault != nil {
		e.serveFault(w, r, fault, perform)
		return
	}
	answer, err := perform()
	e.answer(w, r, answer, err)
}

// perform checks a call as the vendor's front end does and carries it out.
func (e *Emulator) perform(r *http.Request, route route, method *discovery.Method, parameters map[string]string, raw []byte) (any, error) {
	handle := route.methods[method.ID]
	if handle == nil {
		e.logger.Warn("call of a method that the emulator does not have", "id", method.ID, "path", r.URL.Path)
		return nil, fail(http.StatusNotImplemented, "The emulator does not have the method %s.", method.ID)
	}
	if err := e.authorize(r, method); err != nil {
		return nil, err
	}
	if route.isManagement {
		if err := e.spendQuota(); err != nil {
			return nil, err
		}
	}
	if err := method.CheckQuery(r.URL.Query()); err != nil {
		return nil, err
	}
	if err := checkFields(route.document, method.Response.Schema, r.URL.Query().Get("fields")); err != nil {
		return nil, err
	}
	c := &call{ctx: r.Context(), method: method, parameters: parameters, query: r.URL.Query(), base: e.baseURL(r)}
	switch {
	case method.Request.Schema != "":
		body, err := route.document.Decode(method.Request.Schema, raw)
		if err != nil {
			return nil, err
		}
		c.body = body
	case len(bytes.TrimSpace(raw)) > 0 && !bytes.Equal(bytes.TrimSpace(raw), []byte("{}")):
		return nil, invalid("Invalid JSON payload received. Unknown name \"\": Request body must be empty.")
	}
	answer, err := handle(e, c)
	if err != nil {
		return nil, e.logInternal(err, method.ID)
	}
	return e.checked(route.document, method.Response.Schema, answer)
}

// checked marshals an answer and, if the options ask for it, holds it against
// the discovery document.
func (e *Emulator) checked(document *discovery.Document, schema string, answer any) (any, error) {
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, e.logInternal(err, schema)
	}
	if e.options.CheckAnswers {
		if err := document.Validate(schema, text); err != nil {
			e.logger.Error("the emulator's own answer is wrong", "schema", schema, "error", err)
			return nil, fail(http.StatusInternalServerError, "The emulator's own answer is wrong: %v", err)
		}
	}
	return json.RawMessage(text), nil
}

// logInternal logs an error that the caller gets without its text, and returns it unchanged.
func (e *Emulator) logInternal(err error, where string) error {
	var s *status
	var violations *discovery.Error
	if !errors.As(err, &s) && !errors.As(err, &violations) {
		e.logger.Error("internal error", "in", where, "error", err)
	}
	return err
}

func (e *Emulator) baseURL(r *http.Request) string {
	if e.options.PublicURL != "" {
		return e.options.PublicURL
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}

// answer writes an answer or an error in the vendor's form.
func (e *Emulator) answer(w http.ResponseWriter, r *http.Request, answer any, err error) {
	if err != nil {
		e.answerError(w, r, err)
		return
	}
	text, _ := answer.(json.RawMessage)
	if fields := r.URL.Query().Get("fields"); fields != "" {
		if text, err = selectFields(text, fields); err != nil {
			e.answerError(w, r, err)
			return
		}
	}
	writeJSON(w, r, http.StatusOK, text)
}

func (e *Emulator) answerError(w http.ResponseWriter, r *http.Request, err error) {
	code, body := http.StatusBadRequest, any(nil)
	if refusal, ok := errors.AsType[*grantError](err); ok {
		body = refusal
	} else {
		s := asStatus(err)
		code, body = s.code, s.body()
	}
	text, _ := json.Marshal(body) // texts and numbers always marshal
	writeJSON(w, r, code, text)
}

// writeJSON writes JSON, indented unless the query says prettyPrint=false.
func writeJSON(w http.ResponseWriter, r *http.Request, code int, text []byte) {
	if pretty := r.URL.Query().Get("prettyPrint"); pretty != "false" {
		var indented bytes.Buffer
		if json.Indent(&indented, text, "", "  ") == nil {
			indented.WriteByte('\n')
			text = indented.Bytes()
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(code)
	_, _ = w.Write(text)
}

// serveFault gives a call what a fault prescribes.
func (e *Emulator) serveFault(w http.ResponseWriter, r *http.Request, f *Fault, perform func() (any, error)) {
	var answer any
	var err error
	if f.AfterEffect {
		answer, err = perform()
	}
	if !e.sleep(r, time.Duration(f.DelayMS)*time.Millisecond) {
		return
	}
	onlyDelay := f.DelayMS > 0 && f.Status == 0 && f.Reason == "" && !f.DropConnection && f.Corrupt == "" && !f.AfterEffect
	if onlyDelay {
		answer, err = perform()
		e.answer(w, r, answer, err)
		return
	}
	if f.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfterSeconds))
	}
	switch {
	case f.DropConnection || f.AfterEffect && f.Status == 0 && f.Reason == "" && f.Corrupt == "":
		panic(http.ErrAbortHandler)
	case f.Corrupt == "html":
		writeHTML(w, f.Status)
	case f.Corrupt == "truncate":
		truncate(w, answer, err)
	case f.Status == http.StatusNotModified || f.Status == http.StatusNoContent:
		w.WriteHeader(f.Status)
	case f.Status >= 200 && f.Status < 300:
		writeJSON(w, r, f.Status, []byte("{}"))
	default:
		e.answerError(w, r, f.status())
	}
}

// sleep waits unless the caller goes away or the emulator ends.
func (e *Emulator) sleep(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	case <-e.life.Done():
		panic(http.ErrAbortHandler)
	}
}

func writeHTML(w http.ResponseWriter, code int) {
	code = cmp.Or(code, http.StatusBadGateway)
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, "<!DOCTYPE html>\n<html lang=en><title>Error "+strconv.Itoa(code)+"</title><p>The server encountered a "+
		"temporary error and could not complete your request.\n")
}

// truncate announces a whole answer and sends half of it.
func truncate(w http.ResponseWriter, answer any, err error) {
	text, ok := answer.(json.RawMessage)
	if !ok || err != nil {
		text = json.RawMessage(`{"name":"` + strings.Repeat("x", 64) + `"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text[:len(text)/2])
	_ = http.NewResponseController(w).Flush() // what cannot be flushed is cut off all the same
	panic(http.ErrAbortHandler)
}

// statusRecorder notes the status that was written.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (r *statusRecorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController find what is recorded.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
