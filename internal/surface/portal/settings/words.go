package settings

func secretHelp(f signInForm) string {
	if f.HasSecret {
		return "One is kept, sealed; it is never shown. Leave this empty to keep it."
	}
	return "Kept sealed, and never shown again. Leave it empty for a public client."
}
