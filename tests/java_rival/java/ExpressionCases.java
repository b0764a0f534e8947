import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Scanner;
import java.util.regex.Pattern;

/** Reads lines of an expression and texts, each in Base64; writes which texts it matches as 0 and 1, or why it is none. */
public class ExpressionCases {
    /** Pattern recurses deeply. */
    private static final long STACK_BYTES = 64L << 20;

    public static void main(String[] args) throws InterruptedException {
        var thread = new Thread(null, ExpressionCases::answer, "cases", STACK_BYTES);
        thread.start();
        thread.join();
    }

    private static void answer() {
        var lines = new Scanner(System.in, StandardCharsets.US_ASCII);
        var answers = new StringBuilder();
        while (lines.hasNextLine()) {
            answers.append(answer(lines.nextLine().split(" "))).append('\n');
        }
        System.out.print(answers);
    }

    private static String answer(String[] fields) {
        var answer = new StringBuilder();
        try {
            var pattern = Pattern.compile(decoded(fields[0]));
            for (int i = 1; i < fields.length; i++) {
                answer.append(pattern.matcher(decoded(fields[i])).matches() ? '1' : '0');
            }
            return answer.toString();
        } catch (RuntimeException | StackOverflowError error) {
            return "none: " + error.getClass().getSimpleName();
        }
    }

    private static String decoded(String field) {
        return new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
    }
}
