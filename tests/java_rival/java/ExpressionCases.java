import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Scanner;
import java.util.regex.Pattern;

/** Reads lines of an expression and texts, each in Base64; writes which texts it matches as 0 and 1, or why it is none. */
public class ExpressionCases {
    public static void main(String[] args) {
        var lines = new Scanner(System.in, StandardCharsets.US_ASCII);
        var answers = new StringBuilder();
        while (lines.hasNextLine()) {
            var fields = lines.nextLine().split(" ");
            try {
                var pattern = Pattern.compile(decoded(fields[0]));
                for (int i = 1; i < fields.length; i++) {
                    answers.append(pattern.matcher(decoded(fields[i])).matches() ? '1' : '0');
                }
            } catch (RuntimeException | StackOverflowError error) {
                answers.append("none: ").append(String.valueOf(error.getMessage()).lines().findFirst().orElse(""));
            }
            answers.append('\n');
        }
        System.out.print(answers);
    }

    private static String decoded(String field) {
        return new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
    }
}
