package org.codehaus.mojo.animal_sniffer;

import java.io.Serializable;
import java.util.Set;

/** Clazz is one class of a signature file, in the form in which such files are written. */
public final class Clazz implements Serializable {
    private static final long serialVersionUID = 1;

    private String name;
    private Set<String> signatures;
    private String superClass;
    private String[] superInterfaces;

    public String name() {
        return name;
    }

    public Set<String> signatures() {
        return signatures;
    }

    public String superClass() {
        return superClass;
    }

    public String[] superInterfaces() {
        return superInterfaces == null ? new String[0] : superInterfaces;
    }
}
