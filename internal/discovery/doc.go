// Package discovery reads Google's discovery documents and checks JSON against
// them.
//
// A discovery document lists the methods of a REST interface (HTTP method, path,
// query parameters, schema of request and answer) and its schemas. This package
// answers four questions about them:
//
//   - which method does a request call: [Document.Match], [Document.Method];
//   - may its query be as it is: [Method.CheckQuery];
//   - is a JSON document an instance of a schema: [Document.Validate], and
//     [Document.Decode], which also hands over the decoded members;
//   - what is at a path of a schema: [Document.Property].
//
// The check is as strict as the vendor's own, or stricter: member names are
// exact and may occur once, enum values must be known, 64-bit integers are
// strings, durations end in "s", times are RFC 3339. Where the vendor's words
// for a complaint are known, they are used.
//
// A [Document] never changes after it was read and may be shared.
package discovery
