package trimtab;

/** Names of brokers, sweeps, namespaces and bundles: the same rule as controller.wire.base.Name. */
final class Names {
    private Names() {
    }

    /** Whether *text* is one: not empty, not too long, without control characters and line breaks. */
    static boolean isName(String text) {
        if (text == null || text.isEmpty() || text.length() > 2 * Wire.LONGEST_NAME) {
            return false;
        }
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c < ' ' || c >= 0x7F && c < 0xA0 || c == 0x2028 || c == 0x2029) {
                return false;
            }
        }
        return text.length() <= Wire.LONGEST_NAME || text.codePointCount(0, text.length()) <= Wire.LONGEST_NAME;
    }
}
