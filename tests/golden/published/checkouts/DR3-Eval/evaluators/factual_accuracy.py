"""Made prompts of factual accuracy. Files are shown by their kind, in the order in which the code asks for them."""


def extract_csv_content(content, i):
    return content + "\n\n<the rest is left out>", f"<and more after {i} rows>"


def bm25_retrieve_relevant_chunks(chunks, idx, chunk_num):
    return f"<part {chunk_num}>\n{chunks[idx]}"


def prepare_file_for_api(filename, text_content):
    return f"A text, {filename}:\n{text_content}"


class FactualAccuracyAgentEvaluator:
    def _extract_claims_single_call(self, report_text):
        prompt = f"""Which claims of this report cite a source?

{report_text}

As JSON: {{"claims": [{{"id": 1, "claim_text": "...", "citations": ["[Doc: ...]"], "source_type": "doc"}}]}}
"""
        return [{"role": "system", "content": "You find claims."}, {"role": "user", "content": prompt}]

    def _verify_batch_with_api_thread(
        self, claims_text, file_path, source_info, text_content, citation_details
    ):
        shown = [
            f"Slides, {file_path.name}:\n{text_content}",
            f"A document, {file_path.name}:\n{text_content}",
            f"Rows, {file_path.name}:\n{text_content}",
            f"Sheets, {file_path.name}:\n{text_content}",
            f"JSON, {file_path.name}:\n{text_content}",
            f"Some file, {file_path.name}:\n{text_content}",
        ]
        shown.append(f"A page, {source_info['name']}:\n{text_content}")
        text_content = text_content + "\n\n<the rest is left out>"

        location_hint = ""
        location_hint = f" <pages {citation_details['page_range'][0]} to {citation_details['page_range'][1]}>"
        location_hint = f" <page {citation_details['page']}>"
        location_hint = (
            f" <parts {citation_details['chunk_range'][0]} to {citation_details['chunk_range'][1]}>"
        )
        location_hint = f" <part {citation_details['chunk']}>"

        prompt = f"""Does the source above bear these claims out?

{claims_text}

As JSON: {{"results": [{{"id": 1, "supported": true, "explanation": "..."}}]}}
"""
        return shown, text_content, location_hint, prompt
