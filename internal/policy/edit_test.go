package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/resource"
)

// Description, labels and group have limits, in a new policy and in an edit.
func TestEdit_Texts(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada := o.person("Ada", account.Admin)
	p := o.warehouse(ada)
	long := func(n int) string { return strings.Repeat("ä", n) }
	for name, row := range map[string]struct {
		edit policy.Edit
		want string // the field that is refused; empty: none
	}{
		"longest":                  {policy.Edit{Description: new(long(1000)), Labels: new([]string{long(64)}), Group: new(long(64))}, ""},
		"line breaks":              {policy.Edit{Description: new("for\r\nvans\n")}, ""},
		"all labels":               {policy.Edit{Labels: new(slices.Repeat([]string{"a"}, 50))}, ""},
		"label with a comma":       {policy.Edit{Labels: new([]string{"Berlin, Mitte"})}, ""},
		"nothing":                  {policy.Edit{Description: new(""), Labels: new([]string{}), Group: new("")}, ""},
		"description too long":     {policy.Edit{Description: new(long(1001))}, "description"},
		"description with a bell":  {policy.Edit{Description: new("a\ab")}, "description"},
		"description not in UTF-8": {policy.Edit{Description: new("\xff")}, "description"},
		"too many labels":          {policy.Edit{Labels: new(slices.Repeat([]string{"a"}, 51))}, "labels"},
		"label too long":           {policy.Edit{Labels: new([]string{"a", long(65)})}, "labels"},
		"label of lines":           {policy.Edit{Labels: new([]string{"a\nb"})}, "labels"},
		"blank label":              {policy.Edit{Labels: new([]string{" "})}, "labels"},
		"group too long":           {policy.Edit{Group: new(long(65))}, "group"},
		"group of lines":           {policy.Edit{Group: new("a\nb")}, "group"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := policy.New{Name: name, Type: policy.Platform}
			if row.edit.Description != nil {
				wanted.Description = *row.edit.Description
			}
			if row.edit.Labels != nil {
				wanted.Labels = *row.edit.Labels
			}
			if row.edit.Group != nil {
				wanted.Group = *row.edit.Group
			}
			_, saveErr := o.Preview(t.Context(), ada, p.ID, 1, row.edit)
			_, createErr := o.CreateBy(t.Context(), ada, wanted)
			for what, err := range map[string]error{"edit": saveErr, "new policy": createErr} {
				fields := fault.From(err).Fields
				switch {
				case row.want == "" && err != nil:
					t.Errorf("%s: %v, want no error", what, err)
				case row.want != "" && (len(fields) != 1 || fields[0].Field != row.want || fault.CodeOf(err) != fault.InvalidArguments):
					t.Errorf("%s: %v with the fields %v, want one of %s", what, err, fields, row.want)
				}
			}
		})
	}
}

// A policy with longer texts, from before there was a limit, opens and is edited: they stay.
func TestEdit_LongTextsStay(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ada := o.person("Ada", account.Admin)
	old := policy.Policy{ID: resource.NewID(), CompanyID: o.company.ID, CompanySlug: o.company.Slug, Name: "Old", Type: policy.Platform,
		Version: 1, Document: policy.Empty(policy.Platform), Description: strings.Repeat("d", 5000), Labels: []string{"a\nb"},
		Group: strings.Repeat("g", 500), CreatedAt: o.Now(), UpdatedAt: o.Now()}
	o.ok(o.Store.CreatePolicy(t.Context(), old, policy.AuthorOf(ada.Actor()), ""))
	saved, err := o.SaveBy(t.Context(), ada, old.ID, 1, policy.Edit{Name: new("New"), Changes: set("CAMERA", "BLOCK")})
	if o.ok(err); saved.Description != old.Description || !slices.Equal(saved.Labels, old.Labels) || saved.Group != old.Group {
		t.Errorf("saved with %d characters of description, the labels %q and the group %.20q", len(saved.Description), saved.Labels,
			saved.Group)
	}
	_, err = o.SaveBy(t.Context(), ada, old.ID, 2, policy.Edit{Description: new("short")})
	o.ok(err)
}
