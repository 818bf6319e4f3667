package house

import "regexp"

// unfinished matches the marks of work put off, as words of their own at the
// start of a comment or before a colon or bracket.
var unfinished = regexp.MustCompile(`(?m)(^(//|/\*)?\s*(TODO|FIXME|XXX)\b)|\b(TODO|FIXME|XXX)[(:]`)

// checkText finds comments that put work off.
func (r *report) checkText(f *file) {
	for _, group := range f.Comments {
		for _, comment := range group.List {
			if unfinished.MatchString(comment.Text) {
				r.add(comment.Pos(), "a comment puts work off: do it, or make it an issue")
			}
		}
	}
}
